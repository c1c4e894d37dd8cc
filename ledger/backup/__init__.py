"""Log backup: a copy of the log outside the broker; written, verified, restored, and used to repair a damaged stream.

`manifest.py` is the list of a backup's files; a file of events is one of ledger/archive/event_file.py. `writing.py`
appends new events, `checking.py` finds damage, `restoring.py` fills an empty stream with what is in `refill/`,
`repairing.py` repairs one.
"""
