"""The event types described for others: JSON Schema, AsyncAPI, old versions, upcasts, examples."""
