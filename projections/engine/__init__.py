"""From raw events to views: decode, gate, fold, checkpoint, digest; parked and refused events."""
