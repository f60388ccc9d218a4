"""A server that speaks the wire protocol of Anthropic: messages, streamed or whole, with tools.

What it answers is a function of the request; unless told it says good day, whatever it is asked.
A request that continues a thread, and so brings only what is new, is made whole first.
"""

import contextlib
import itertools
import json
from collections.abc import Callable, Generator, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.http_server import serving
from tests.openai_server import Asked, Calls, Says

KEY = "sk-ant-the-right-key"

Model = Callable[[Asked], Says | Calls]

_PIECE_CHARS = 4


def _good_day(asked: Asked) -> Says:
    return Says("Bonjour.")


class _Handler(BaseHTTPRequestHandler):
    """Answers whoever has the key."""

    model: Model
    threads: dict[str, dict[str, Any]]
    """The whole of what was asked and answered, by the id of the answer."""
    numbers: Iterator[int]
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer(200, "text/plain", "")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        self.close_connection = True
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        if KEY not in (self.headers.get("x-api-key"), bearer):
            error = {"type": "authentication_error", "message": "invalid x-api-key"}
            self._answer(401, "application/json", json.dumps({"type": "error", "error": error}))
            return
        if self.path.split("?")[0] != "/v1/messages":
            error = {"type": "not_found_error", "message": "there are only messages here"}
            self._answer(404, "application/json", json.dumps({"type": "error", "error": error}))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        thread: dict[str, str] = body.get("thread") or {}
        if thread.get("type") == "continue":
            earlier = self.threads[thread["previous_message_id"]]
            body = earlier | body | {"messages": earlier["messages"] + body["messages"]}
        whole = _message(next(self.numbers), type(self).model(Asked(self.path, headers, body)))
        said = {"role": "assistant", "content": whole["content"]}
        self.threads[whole["id"]] = body | {"messages": [*body["messages"], said]}
        if not body.get("stream"):
            self._answer(200, "application/json", json.dumps(whole))
            return
        events = [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in _events(whole)]
        self._answer(200, "text/event-stream", "".join(events))

    def _answer(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Not on our terminal."""


def _message(number: int, turn: Says | Calls) -> dict[str, Any]:
    """The whole answer."""
    if isinstance(turn, Says):
        content: list[dict[str, Any]] = [{"type": "text", "text": turn.text}]
    else:
        content = [
            {
                "type": "tool_use",
                "id": f"toolu_{number}_{index}",
                "name": name,
                "input": json.loads(text),
            }
            for index, (name, text) in enumerate(turn.as_texts())
        ]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": content,
        "stop_reason": "end_turn" if isinstance(turn, Says) else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


def _events(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The same in pieces."""
    begun: dict[str, Any] = whole | {"content": [], "stop_reason": None}
    yield {
        "type": "message_start",
        "message": begun | {"usage": whole["usage"] | {"output_tokens": 1}},
    }
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            first, text, kind = block | {"text": ""}, block["text"], ("text_delta", "text")
        else:
            text, kind = json.dumps(block["input"]), ("input_json_delta", "partial_json")
            first = block | {"input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": first}
        for at in range(0, len(text), _PIECE_CHARS):
            delta = {"type": kind[0], kind[1]: text[at : at + _PIECE_CHARS]}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 7}}
    yield {"type": "message_stop"}


@contextlib.contextmanager
def anthropic_server(model: Model = _good_day) -> Generator[str]:
    """The base address of a server on a free port of this machine."""

    class Handler(_Handler):
        """Knows its model."""

    Handler.model = staticmethod(model)
    Handler.threads = {}
    Handler.numbers = itertools.count(1)
    with serving(Handler) as port:
        yield f"http://127.0.0.1:{port}"
