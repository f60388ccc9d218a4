"""The command line: it translates between a person and `backburner.app`, and decides nothing.

Only what the command at hand needs is imported, because a person waits for it.
"""

import sys

_CALLED_IN_LOOPS = ("status", "progress", "result")


def main() -> int:
    """The program `backburner`. Answers its exit status."""
    if any("://" in word for word in sys.argv):
        from backburner.cli.commandline import hide_own_passwords

        hide_own_passwords()
    if sys.argv[1:2] and sys.argv[1] in _CALLED_IN_LOOPS:
        from backburner.cli.inside import try_quickly

        status = try_quickly(sys.argv[1:])
        if status is not None:
            return status
    from backburner.cli.guard import guarded

    return guarded(lambda: _run(sys.argv[1:]))


def _run(argv: list[str]) -> int:
    if argv[:1] == ["ls"]:
        from backburner.cli.quick import read_plain_ls

        listing = read_plain_ls(argv[1:])
        if listing is not None:
            from backburner.cli.listing import list_tasks

            return list_tasks(listing)
    if argv[:2] == ["completion", "--candidates"]:
        from backburner.cli.completion import answer

        return answer(argv[2:])
    if argv[:1] in (["ask"], ["artifact"]):
        from backburner.cli.taking_part import try_plain

        status = try_plain(argv)
        if status is not None:
            return status
    from backburner.cli.program import run_program

    return run_program(argv)
