"""Operations on resources."""
