"""Which items say the same? Near-duplicates of one owner within one set of scopes (mission K5)."""
