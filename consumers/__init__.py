"""Event consumers of a node: the FastStream application, reactors, and the client for chat models."""
