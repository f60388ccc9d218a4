"""Processes: who they are, which belong to a task, how to end all of them."""
