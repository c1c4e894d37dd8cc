"""Log backup: a copy of the log outside the broker; written, verified, restored, and used to repair a damaged stream.

`segments.py` is the format of one file of events, `manifest.py` the list of a backup's files. `writing.py` appends new
events, `checking.py` finds damage, `restoring.py` creates a stream from a backup, `repairing.py` repairs one.
"""
