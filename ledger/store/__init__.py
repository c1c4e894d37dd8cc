"""Events in a stream: append, batches, duplicates, reading, parked events; on JetStream or in memory."""
