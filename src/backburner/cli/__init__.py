"""The command line: it translates between a person and `backburner.app`, and decides nothing.

Only what the command at hand needs is imported, because a person waits for it.
"""

import sys


def main() -> int:
    """The program `backburner`. Answers its exit status."""
    from backburner.cli.guard import guarded

    return guarded(lambda: _run(sys.argv[1:]))


def _run(argv: list[str]) -> int:
    if argv[:1] == ["ls"]:
        from backburner.cli.quick import read_plain_ls

        listing = read_plain_ls(argv[1:])
        if listing is not None:
            from backburner.cli.listing import list_tasks

            return list_tasks(listing)
    from backburner.cli.program import run_program

    return run_program(argv)
