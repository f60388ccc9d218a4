"""Tools: what can be called by name, how their arguments are checked, and what they may use."""
