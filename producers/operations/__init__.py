"""Operations: one async function for each query or change, shared by all interfaces; a file per family.

Each takes the desk (the parts of the node that it needs), the caller, and the parsed request. An interface parses,
calls and answers, and holds no logic of its own.
"""
