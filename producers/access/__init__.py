"""Access to a node: tokens, the identities that they are bound to, and rate limits."""
