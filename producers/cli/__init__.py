"""The `kledger` command line interface; `main.py` registers its commands."""
