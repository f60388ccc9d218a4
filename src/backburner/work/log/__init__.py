"""The bounded log of a task: kept small while it grows, read by cursor, folded for the reader.

`bounder.LogBounder` is for whoever keeps the task, `read.read_output` for everyone who wants to
see it. Import from the modules: who only measures a log does not pay for folding one.
"""
