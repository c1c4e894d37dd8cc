"""View of processes: evolutions, extractions, slims and conflicts, each with its stages."""
