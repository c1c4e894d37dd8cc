"""Personal data: each person's key, the vault that holds it, sealed values, erasure."""
