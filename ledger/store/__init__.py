"""Ledger implementations on JetStream and in memory: append, atomic batches, duplicates, reading, parked events."""
