"""View of refused events, each with its reason: nothing is dropped silently."""
