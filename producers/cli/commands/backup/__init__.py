"""Commands of backups: one is made, brought back into a new node, or used to repair a log."""
