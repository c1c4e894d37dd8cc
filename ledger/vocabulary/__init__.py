"""Published description of the event types: JSON Schema, AsyncAPI, old versions, upcasts, examples."""
