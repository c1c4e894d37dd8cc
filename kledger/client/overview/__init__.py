"""Requests about all that a caller sees, and changes of many items at once."""
