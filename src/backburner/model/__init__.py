"""Values and rules: what a task, an event and a signal are, and which changes are allowed.

Pure: nothing here touches a file, a process or a database, and nothing of ours is imported.
"""
