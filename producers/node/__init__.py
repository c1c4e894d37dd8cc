"""A node: how it is composed, its operator, its jobs, status and readiness."""
