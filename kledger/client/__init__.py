"""The client over HTTP, with an asynchronous and a synchronous face."""
