"""Archive of decoded events: columns beside the archived bodies, from which views are folded without the stream."""
