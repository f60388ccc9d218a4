"""The process of a Python function or an importable tool: what runs in it, and what it leaves."""
