"""Which types of scopes were registered, with which priority."""
