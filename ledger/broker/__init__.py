"""NATS broker: the embedded server, connections, permissions, the stream and its configuration."""
