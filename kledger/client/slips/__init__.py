"""What a program writes that comes from another library, and what it is told."""
