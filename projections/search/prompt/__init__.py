"""What a recall found as text for a prompt, each statement once."""
