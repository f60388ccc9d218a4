"""A home and a keeper for all tests of a module; each test has sessions of its own."""

from tests.faults.homes import home_of_module, shared_home

__all__ = ["home_of_module", "shared_home"]
