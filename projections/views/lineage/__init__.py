"""Where facts came from, and what came of a trace or a message."""
