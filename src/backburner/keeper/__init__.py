"""The detached process that keeps the promise when no application is alive, and its guardian."""
