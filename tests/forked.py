"""Stands for a program that a nursery forks, where somebody else starts it by a command line.

`python -I -S forked.py ADDRESS MODULE ARGUMENT…`. It gives away what it was started with, passes a
SIGTERM on, and ends as the program does. It loads little, or nothing would be won.
"""

import json
import os
import signal
import socket
import sys


def main(address: str, module: str, *arguments: str) -> int:
    reading, writing = os.pipe()
    request = os.memfd_create("request")
    given = {
        "module": module,
        "arguments": arguments,
        "environment": dict(os.environ),
        "cwd": os.getcwd(),
        "umask": os.umask(0),
    }
    with open(os.dup(request), "w") as file:
        json.dump(given, file)
    os.lseek(request, 0, os.SEEK_SET)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as nursery:
        nursery.connect("\0" + address)
        socket.send_fds(nursery, [b"?"], [0, 1, 2, request, writing])
    for descriptor in (0, 1, 2, writing):  # it would be open for as long as this one is
        os.close(descriptor)
    with open(reading) as status:
        pid = int(status.readline())

        def pass_on(number: int, _: object) -> None:
            os.kill(pid, number)

        signal.signal(signal.SIGTERM, pass_on)
        code = int(status.readline())
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
