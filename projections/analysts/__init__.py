"""SQL for analysts: Quack, the statement guard, limits, snapshots."""
