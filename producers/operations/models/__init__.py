"""Operations on models' work: evolutions, extractions, slims, conflicts."""
