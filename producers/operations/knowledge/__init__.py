"""Operations on knowledge items."""
