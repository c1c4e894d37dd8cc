"""Events that do not count, each with its reason: nothing is dropped silently."""
