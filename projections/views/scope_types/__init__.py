"""View of the registered types of scopes, with their priorities."""
