"""The command line: units, and the real program with real jobs."""
