"""View of profiles: the memory of each user, now and at any position."""
