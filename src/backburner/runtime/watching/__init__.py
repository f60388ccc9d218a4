"""Watching a job while it runs (X4): whether it is ready, what it prints, that it is silent."""
