"""The event log: event types, wire format, broker, stores. Start here.

`event.py` and `events/` define the events, `wire/` their envelope and subjects, and `stream.py` the interface of a
ledger, which `store/jetstream.py` and `store/in_memory.py` implement. `broker/` runs the embedded nats-server,
`integrity/` keeps the hash chain, `privacy/` seals personal data. Nothing here depends on a view.
"""
