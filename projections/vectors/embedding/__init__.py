"""Texts to dense vectors: models, the embeddings that are kept, and the backlog."""
