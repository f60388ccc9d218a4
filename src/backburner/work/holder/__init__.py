"""The process that stands between a wrapper and a job with input, and holds its pipe or terminal.

It is started for each such job, so what it loads is little (no dataclasses, typing, contextlib):
those would double the time of a start.
"""
