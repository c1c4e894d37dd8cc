"""The pages of docs/reference, one generator a page; `python -m docs.generate` writes them."""
