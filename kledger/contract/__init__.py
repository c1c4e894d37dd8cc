"""What client and node agree on: error codes, scopes, entities, languages."""
