"""The doors: how agents, people and programs publish events and ask; `node/compose.py` puts a node together."""
