"""Slack: the adapter, its two doors, what it hears, how it words a post, and what it posted."""
