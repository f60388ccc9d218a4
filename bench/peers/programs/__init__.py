"""One module for each peer; they run in .bench-venv, so they import nothing of Backburner."""
