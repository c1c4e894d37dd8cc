"""View of lineage: where facts came from, and what a trace or a message led to."""
