"""A plain server for the conformance suite, a page for each part of the protocol."""
