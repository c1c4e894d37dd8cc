"""Knowledge as a tree of JSON files: export from a node, and import into one."""
