"""What the log has and the view does not yet, for reads that need not wait for the fold."""
