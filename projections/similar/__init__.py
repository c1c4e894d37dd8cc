"""Which items say the same? Near-duplicates of one owner, seen by the same (mission K5)."""
