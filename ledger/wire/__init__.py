"""An event on the wire: envelope, subject, message headers."""
