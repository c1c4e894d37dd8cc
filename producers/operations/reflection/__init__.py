"""Reflection: extraction that is asked by itself."""
