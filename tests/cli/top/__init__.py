"""Tests of the full-screen view."""
