"""The HTTP routes, a file a family."""
