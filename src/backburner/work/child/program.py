"""The program of a child, run by its path: reads its request, finds our package, carries it out.

Up to the request nothing of ours is loaded, because only the request says where it is.
"""

import json
import os
import sys


def main() -> int:
    """The exit code."""
    text = sys.stdin.buffer.read()
    # What the function starts must neither read the request nor wait for anybody.
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    folder = os.path.dirname(os.path.abspath(__file__))
    known = [*json.loads(text)["path"], os.path.abspath(f"{folder}/../../..")]
    # As in the process that asked; what this interpreter has beside it comes last.
    sys.path[:] = list(dict.fromkeys([*known, *sys.path]))
    from backburner.work.child.carrying import carry_out
    from backburner.work.child.request import Request

    request = Request.from_text(text)
    sys.argv[:] = [request.reference]
    return carry_out(request)


if __name__ == "__main__":
    sys.exit(main())
