"""How requests of a client reach a node, over httpx or over sockets of the standard library; or why they do not."""
