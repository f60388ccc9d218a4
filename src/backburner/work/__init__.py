"""Carrying work out: processes and their trees, the bounded log, the runners."""
