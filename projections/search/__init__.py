"""What helps with a query: tokens, candidates, ranking."""
