"""What was served to whom, for which trace."""
