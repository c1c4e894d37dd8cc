"""The live view of a node: its file, the projector that feeds it, and rebuilds."""
