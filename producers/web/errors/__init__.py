"""Errors as people read them: what happened and what to do, by code, with the node's own message as a detail."""
