"""Operations on many items at once."""
