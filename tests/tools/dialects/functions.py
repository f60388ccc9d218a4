"""Functions that these tests call in processes of their own."""

import sys


def both(n: int) -> int:
    """Writes to each stream."""
    print("to out")
    print("to err", file=sys.stderr)
    return n * 2


def fails() -> None:
    """Raises."""
    raise ValueError("no good")


def stubborn() -> None:
    """Does not end when it is asked to."""
    import signal
    import threading

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("deaf", flush=True)
    threading.Event().wait()
