"""Background work in a chat."""
