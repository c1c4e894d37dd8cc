"""What client and node agree on: error codes, words, scopes, entities, languages."""
