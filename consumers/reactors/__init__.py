"""What the ledger is asked to do by an event, and does by events: each reactor follows one kind of request."""
