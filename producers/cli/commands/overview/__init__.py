"""Commands about all that the caller sees."""
