"""Operations for the operator of a node."""
