"""What views are built with: envelopes, decisions, SQL text, versions, pages."""
