"""Search: tokens, candidates, ranking."""
