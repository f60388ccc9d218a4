"""The record: the only code that knows SQL. One protocol, one conformance suite."""
