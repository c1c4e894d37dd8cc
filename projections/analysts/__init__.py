"""SQL access of analysts: Quack, the statement guard, limits, snapshots."""
