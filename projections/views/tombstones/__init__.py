"""View of tombstones: what a person retired with a reason, or corrected."""
