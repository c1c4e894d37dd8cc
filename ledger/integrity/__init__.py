"""Log integrity: hash chain, leaves, notary, signed checkpoints, audit, inclusion proofs."""
