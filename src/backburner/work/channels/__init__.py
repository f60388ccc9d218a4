"""Carrying a signal out of the house: through a program, over HTTP, onto a screen."""
