"""A module that cannot be imported."""

raise ZeroDivisionError("while it was loaded")
