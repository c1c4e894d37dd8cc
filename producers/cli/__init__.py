"""What does a person type? The `kledger` command; `main.py` lists what it can do."""
