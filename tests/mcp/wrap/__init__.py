"""Tests of the wrap."""
