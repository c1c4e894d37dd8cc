"""`python -m kledger`: the command, where its script is not on the PATH."""

from producers.cli.entry import main

if __name__ == "__main__":
    main()
