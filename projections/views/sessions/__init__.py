"""View of sessions: when each was opened, summed up and closed; never what was said in it."""
