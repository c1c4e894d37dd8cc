"""Search: candidates, ranking, and what came of it as text."""
