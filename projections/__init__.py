"""Projections: folds of the log into views, and the queries over them.

`engine/batch.py` takes a batch of events through decode -> gate -> fold, in one transaction with the checkpoint.
`engine/registry.py` lists the views. Each view has a folder with its tables, its fold and its queries.
"""
