"""The doors: how agents, people and programs publish events and ask; `node.py` puts a node together."""
