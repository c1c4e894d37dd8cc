"""Knowledge as a tree of JSON files: exported from a node, and imported into one (mission K9)."""
