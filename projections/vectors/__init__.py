"""Vectors and keywords in Qdrant: the port, its adapters, embeddings, and the vector process."""
