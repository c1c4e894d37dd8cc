"""Operations on user profiles."""
