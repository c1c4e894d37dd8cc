"""View of goals: what each agent works towards, and the knowledge injected for it."""
