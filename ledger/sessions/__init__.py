"""Words of sessions: a stream of their own, from which whole sessions are removed; the log has none of them."""
