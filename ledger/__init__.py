"""What was said, kept for good. Start here.

`event.py` and `events/` are the vocabulary, `envelope.py` and `subjects.py` how an event is written down and
where, `stream.py` what a ledger can do; `jetstream.py` and `memory_stream.py` do it, `server.py` runs the
embedded broker. Nothing here knows of any view.
"""
