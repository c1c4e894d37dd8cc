"""The resources that knowledge refers to: what holds now (`resources`), and every version there ever was."""
