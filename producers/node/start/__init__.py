"""Start of a node: what it stands on, and what is assembled on that."""
