"""The HTTP interface: parse, call the operation, answer. `app.py` puts it together; a file of routes a family."""
