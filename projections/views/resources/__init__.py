"""View of the resources that knowledge refers to: the current ones (`resources`), and every version."""
