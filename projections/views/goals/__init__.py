"""What each agent works towards, and which knowledge it was given for that."""
