"""Processes and files of a node: subprocess jobs, logs, tracing, private and atomic files."""
