"""Types of the answers: the JSON documents of the HTTP interface."""
