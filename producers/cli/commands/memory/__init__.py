"""Commands about memories: `kledger memory …`."""
