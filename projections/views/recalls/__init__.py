"""View of recalls: what was served to whom, for which trace."""
