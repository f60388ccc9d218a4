"""Other systems for background work, measured beside ours: see tool_runs.py."""
