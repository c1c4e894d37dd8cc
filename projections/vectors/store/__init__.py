"""Vector stores behind one port: Qdrant Edge in this process, and a Qdrant server."""
