"""Personal data: data keys, the vault that stores them, sealed values, erasure."""
