"""Operations on sessions: append, read, close and remove; everybody reads their own alone."""
