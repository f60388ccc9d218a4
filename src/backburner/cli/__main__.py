"""`python -m backburner.cli`: the same as `backburner`."""

import sys

from backburner.cli import main

if __name__ == "__main__":
    sys.exit(main())
