"""What there is of everything that a caller sees: facets, numbers, days, changes, and what a bulk did."""
