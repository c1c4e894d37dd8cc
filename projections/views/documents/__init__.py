"""View of documents: the sections of each and the items that are its chunks, in their order; and every version."""
