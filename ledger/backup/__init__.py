"""A second copy of the log, outside the broker: written, checked, brought back, and used to mend a damaged stream.

`segments.py` is one file of events, `manifest.py` says which files make the backup, `writing.py` appends what is
new, `checking.py` finds damage, `restoring.py` makes a stream from it, `repairing.py` mends one.
"""
