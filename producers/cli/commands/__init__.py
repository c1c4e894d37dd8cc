"""The commands of `kledger`, a file a noun."""
