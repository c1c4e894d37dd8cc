"""What follows from what was said: folds of the log into views, and the questions the views answer.

`batch.py` takes a piece of the log through decode -> gate -> fold in one transaction with the checkpoint;
`views.py` lists the views; each view has a folder with its tables, its fold and its questions.
"""
