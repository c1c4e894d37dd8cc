"""What a recall asks of models while its reader waits: a reranker's order, and the question in other words."""
