"""The routes, a module for each noun. Each translates a request into one call of a handle."""
