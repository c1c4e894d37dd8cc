"""Wire format of an event: envelope, subject, message headers."""
