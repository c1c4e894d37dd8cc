"""View of all accepted events: the log as a flat table for analysts."""
