"""Operations of projects: who has which role in them."""
