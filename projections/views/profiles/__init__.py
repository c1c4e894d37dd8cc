"""What is remembered of each user, now and at any moment before."""
