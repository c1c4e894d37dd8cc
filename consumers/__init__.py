"""What reacts to events: the FastStream application that hosts a node's folding and, one day, its reactors."""
