"""View of projects' members: who has which role in which project."""
