"""Operations of memories: saving them, reading them, and what becomes of them."""
