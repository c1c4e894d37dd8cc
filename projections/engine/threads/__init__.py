"""Threads: those that questions run on, turn by turn, and those that nobody waits for."""
