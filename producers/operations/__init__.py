"""What every door binds: one plain async function a question or a change, a file a family.

Each takes the desk (the parts of the node it needs), the caller, and what was asked; a door parses, calls
and answers, and holds no logic of its own.
"""
