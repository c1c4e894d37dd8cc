"""Operations on documents: ingest, remove, and read them."""
