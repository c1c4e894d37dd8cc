"""Operations over all that a caller sees."""
