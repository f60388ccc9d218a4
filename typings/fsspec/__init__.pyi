"""File systems by address; what backburner.work.depot uses of it."""
