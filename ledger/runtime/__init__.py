"""Process-level code of a node: subprocess jobs, logs, tracing, private and atomic files."""
