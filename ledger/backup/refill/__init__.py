"""How a restore fills a stream: events are published in order, and read back and compared right behind."""
