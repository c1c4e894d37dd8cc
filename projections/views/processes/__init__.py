"""What is under way or was decided: evolutions, extractions, slims and conflicts, each with its stages."""
