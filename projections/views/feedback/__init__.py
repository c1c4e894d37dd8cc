"""Every case in which an item helped or harmed."""
