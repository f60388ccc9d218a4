"""A server that breaks its promises: `python rude.py KIND`, which says how its starts go.

The first goes well. Then `forgets`: a subscription is refused; `refuses`: nobody is let in. It
notes its starts in the file that WRAPPED_NOTES names, and stays when its input ends.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

notes = Path(os.environ["WRAPPED_NOTES"])
with notes.open("a") as file:
    file.write(f"started {os.getpid()}\n")
first = notes.read_text().count("started") == 1


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(request: dict[str, Any]) -> None:
    method, number = request["method"], request["id"]
    params: dict[str, Any] = request.get("params") or {}
    refused = {"refuses": "initialize", "forgets": "resources/subscribe"}.get(sys.argv[1])
    if method == refused and not first:
        say(id=number, error={"code": -32002, "message": "not again"})
    elif method == "initialize":
        info = {"name": "rude", "version": "1"}
        version = params["protocolVersion"]
        say(id=number, result={"protocolVersion": version, "capabilities": {}, "serverInfo": info})
    elif method == "tools/list":
        say(id=number, result={"tools": [{"name": "babble", "inputSchema": {"type": "object"}}]})
    else:
        sys.stdout.buffer.write(b"\xff\xfe no text\n")
        say(id=number, result={"content": [{"type": "text", "text": str(os.getpid())}]})


for line in sys.stdin:
    if "id" in (told := json.loads(line)):
        answer(told)
time.sleep(3600)  # noqa: TID251 - it has to be ended
