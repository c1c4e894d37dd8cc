"""Building blocks of views: envelopes, decisions, SQL text, versions, pages."""
