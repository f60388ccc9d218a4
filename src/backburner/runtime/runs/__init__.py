"""Runs: tools and agents that an application carries out in its own event loop."""
