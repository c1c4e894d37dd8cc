"""Projection engine: decode, gate, fold, checkpoint, digest; parked and refused events."""
