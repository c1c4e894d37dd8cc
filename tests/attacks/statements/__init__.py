"""Statements as an adversary makes them, sent to a node that has to fold and serve whatever comes."""
