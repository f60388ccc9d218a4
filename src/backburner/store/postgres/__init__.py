"""The shared store: one PostgreSQL database that many machines read and write."""
