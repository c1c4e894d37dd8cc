"""Near-duplicates: items of one owner and the same readers that say the same."""
