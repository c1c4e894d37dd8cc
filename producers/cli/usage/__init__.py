"""How the command is used: its help, its examples, and what a mistyped line is answered."""
