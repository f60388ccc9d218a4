"""One module for each command: its options, its help, and what it does with the public handles."""
