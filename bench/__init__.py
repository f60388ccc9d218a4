"""The measurements behind every number in the docs: `python -m bench`, see README.md."""
