"""Connections of clients: how their requests are read, and what each may take of the node."""
