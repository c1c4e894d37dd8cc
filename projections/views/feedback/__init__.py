"""View of the cases in which items helped or harmed."""
