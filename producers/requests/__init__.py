"""Request bodies, a file a family; what is unknown in one is refused."""
