"""Asking whether something outside of the output is there: a port, a file, an HTTP answer."""
