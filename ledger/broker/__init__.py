"""The NATS broker: the embedded server, connections, rights, the stream and its configuration."""
