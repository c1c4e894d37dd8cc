"""Proof that the log is what was signed: hash chain, leaves, notary, checkpoints, audit, proofs."""
