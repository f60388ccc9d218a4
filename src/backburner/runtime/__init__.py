"""The promise kept over time: services for tasks and signals, the worker, recovery, retention."""
