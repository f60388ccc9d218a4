"""Telegram: the adapter, what it hears, and how it words a post."""
