"""Vector stores behind one port: Qdrant in this process, and a Qdrant server."""
