"""The views, a folder each: tables, fold, rules, and queries."""
