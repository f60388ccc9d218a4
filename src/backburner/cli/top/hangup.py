"""Noticing that the terminal is gone.

Not everyone who takes it away sends a signal, and without one the library that reads the keys
would go on reading nothing, at full speed.
"""

import asyncio
import contextlib
import os
import select
import threading
from collections.abc import Callable, Generator


@contextlib.contextmanager
def told_of_hangup(fd: int, tell: Callable[[], object]) -> Generator[None]:
    """Call ``tell`` in this event loop when nobody is at the other end of ``fd`` any more."""
    loop = asyncio.get_running_loop()
    ours, theirs = os.pipe()

    def wait() -> None:
        poll = select.poll()
        poll.register(fd, 0)  # of a hang-up the kernel always tells
        poll.register(ours, select.POLLIN)
        found = {each for each, _ in poll.poll()}
        if fd in found and ours not in found:
            with contextlib.suppress(RuntimeError):  # the loop has ended a moment ago
                loop.call_soon_threadsafe(tell)

    waiting = threading.Thread(target=wait, name="hangup", daemon=True)
    waiting.start()
    try:
        yield
    finally:
        os.write(theirs, b".")
        waiting.join()
        os.close(ours)
        os.close(theirs)
