"""Live: people who follow what changes are told of it while their page is open."""
