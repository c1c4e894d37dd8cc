"""Every event that counts, flat: the log as a table for analysts."""
