"""The web interface: pages for people, made by the node, that ask what every other interface asks."""
