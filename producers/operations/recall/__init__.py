"""Operations that recall knowledge: search, startup, goals."""
