"""Dense vectors of texts: models, stored embeddings, and the backlog."""
