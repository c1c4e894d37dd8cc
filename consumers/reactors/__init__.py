"""Reactors: each processes one kind of request in the log with a model, and publishes the outcome as events."""
