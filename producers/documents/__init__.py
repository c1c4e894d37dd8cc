"""What a file says: its sections and chunks, read in a child process with bounds on time and memory."""
