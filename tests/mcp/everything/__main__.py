"""A plain server with everything that the conformance suite looks for; it knows nothing of us.

`python -m tests.mcp.everything [--http PORT]`. It proves what passes through a wrap: prompts,
resources, completions, content of every kind, progress, logging, sampling, elicitation, requests
for input. Tools that take long are plain ones here: what makes tasks of them stands before it.
"""

import argparse
import json
import socket
from importlib import import_module

from tests.mcp.everything.server import server

if __name__ == "__main__":
    for part in ("content", "before", "inputs", "lasting", "resources"):
        import_module(f"tests.mcp.everything.{part}")
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int)
    port = parser.parse_args().http
    if port is None:
        server.run()
    else:
        if port == 0:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
        print(json.dumps({"url": f"http://127.0.0.1:{port}/mcp"}), flush=True)
        server.run("streamable-http", port=port)
