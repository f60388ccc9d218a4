"""`python -m backburner.mcp.wrap [--home H] [--session S] [--budget 30] -- COMMAND… | URL`."""

import argparse
import sys

from backburner.mcp.wrap.program import BUDGET_S, run


def main() -> int:
    """Read the options; serve."""
    parser = argparse.ArgumentParser(prog="backburner.mcp.wrap")
    parser.add_argument("--home")
    parser.add_argument("--session")
    parser.add_argument("--budget", type=float, default=BUDGET_S)
    parser.add_argument("server", nargs="+", metavar="COMMAND… | URL")
    given = parser.parse_args()
    return run(given.server, home=given.home, session=given.session, budget_s=given.budget)


if __name__ == "__main__":
    sys.exit(main())
