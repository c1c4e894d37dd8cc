"""Who may use the doors of a node: tokens, what they are bound to, and how much of it in a second."""
