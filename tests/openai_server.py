"""A server that speaks the OpenAI wire protocol: completions and responses, streamed, with tools.

A test gives it a script of turns; each request takes the next one, and the last one is repeated.
A turn may be a function of the request. What was asked is kept, so that a test sees what reached
the model.
"""

import contextlib
import itertools
import json
import threading
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal

from tests.http_server import serving
from tests.waiting import wait_until

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
"""What every turn that is answered says it used."""

_PIECE_CHARS = 4
"""A text comes in pieces of this size, as from a model."""

_call_numbers = itertools.count(1)
"""No two calls have the same id, in whatever request."""


@dataclass(frozen=True, slots=True)
class Says:
    """A text as the answer, in pieces."""

    text: str
    finish: str | None = "stop"
    """None: the stream ends without saying that the answer is complete."""
    held: bool = False
    """After half of the text, wait until `OpenAIServer.go` is set."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of tools: their names and arguments; a text in the place of arguments goes as it is."""

    calls: tuple[tuple[str, Mapping[str, Any] | str], ...]

    @classmethod
    def of(cls, name: str, /, **arguments: Any) -> "Calls":
        """One call."""
        return cls(((name, arguments),))

    def as_texts(self) -> list[tuple[str, str]]:
        """Names and arguments, these as they go over the wire."""
        return [
            (name, arguments if isinstance(arguments, str) else json.dumps(arguments))
            for name, arguments in self.calls
        ]


@dataclass(frozen=True, slots=True)
class Refuses:
    """An error status."""

    status: int
    message: str = "no"
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Fails:
    """Something that no server should do."""

    how: Literal["hang", "break", "garbage", "not json", "hang up"]


Turn = Says | Calls | Refuses | Fails


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def key(self) -> str:
        """The key that came with it."""
        return self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def tools(self) -> list[str]:
        """The names of the tools that were offered."""
        given = self.body.get("tools", [])
        return [each.get("function", each)["name"] for each in given]

    def said_by(self, role: str) -> list[Any]:
        """The contents of the messages of one role."""
        return [each.get("content") for each in self.body["messages"] if each["role"] == role]


Scripted = Turn | Callable[[Asked], Turn]


@dataclass
class OpenAIServer:
    """The server while it runs."""

    port: int
    script: list[Scripted] = field(default_factory=list[Scripted])
    asked: list[Asked] = field(default_factory=list[Asked])
    go: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """Its base address, as a client is given it."""
        return f"http://127.0.0.1:{self.port}/v1"

    def answers(self, *turns: Scripted) -> None:
        """From now on."""
        self.script = list(turns)

    def wait_for(self, count: int) -> list[Asked]:
        """What was asked, once there is so much of it."""
        wait_until(lambda: len(self.asked) >= count, message=lambda: f"only {self.asked}")
        return self.asked

    def next_turn(self, asked: Asked) -> Turn:
        """What the script says to this request."""
        with self._lock:
            self.asked.append(asked)
            turn = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return turn(asked) if callable(turn) else turn


class _Handler(BaseHTTPRequestHandler):
    """Says what the script says."""

    running: OpenAIServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        headers = {name.lower(): value for name, value in self.headers.items()}
        turn = self.running.next_turn(Asked(self.path, headers, body))
        self.close_connection = True
        with contextlib.suppress(OSError):
            match turn:
                case Says() | Calls() if not body.get("stream"):
                    self._answer_whole(turn)
                case Says() | Calls() if self.path.endswith("/responses"):
                    self._respond(turn)
                case Says():
                    self._say(turn)
                case Calls():
                    self._call(turn)
                case Refuses():
                    self._refuse(turn)
                case Fails():
                    self._fail(turn)

    def _answer_whole(self, turn: Says | Calls) -> None:
        """Without a stream: one document."""
        responses = self.path.endswith("/responses")
        document = _whole_response(turn) if responses else _whole_completion(turn)
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, turn: Refuses) -> None:
        error = {"message": turn.message, "type": "error", "param": None, "code": turn.code}
        body = json.dumps({"error": error}).encode()
        self.send_response(turn.status)
        for header, value in turn.headers.items():
            self.send_header(header, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _fail(self, turn: Fails) -> None:
        match turn.how:
            case "hang up":
                pass
            case "hang":
                self.running.closing.wait()
            case "break":
                self._begin()
                self._chunk({"content": "The answer is "})
            case "garbage":
                self._begin()
                self._raw(b'data: {"choices": [{"delta": \x00\xff\n\n')
            case "not json":
                self._begin()
                self._raw(b'data: {"id": 3, "choices": "none"}\n\n')
                self._end("stop")

    def _say(self, turn: Says) -> None:
        self._begin()
        text = turn.text
        pieces = [text[at : at + _PIECE_CHARS] for at in range(0, len(text), _PIECE_CHARS)]
        for number, piece in enumerate(pieces):
            if turn.held and number == len(pieces) // 2:
                while not (self.running.go.wait(0.05) or self.running.closing.is_set()):
                    pass
            self._chunk({"content": piece})
        self._end(turn.finish)

    def _call(self, turn: Calls) -> None:
        self._begin()
        for index, (name, text) in enumerate(turn.as_texts()):
            call: dict[str, Any] = {"index": index, "id": f"call_{next(_call_numbers)}"}
            call["type"] = "function"
            first = call | {"function": {"name": name, "arguments": ""}}
            self._chunk({"tool_calls": [first]})
            for at in range(0, len(text), _PIECE_CHARS):
                piece = text[at : at + _PIECE_CHARS]
                self._chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        self._end("tool_calls")

    # The Responses API

    def _respond(self, turn: Says | Calls) -> None:
        self._begin_stream()
        items: list[dict[str, Any]] = []
        self._notify("response.created", response=_response("in_progress", []))
        if isinstance(turn, Says):
            items.append(self._message(turn.text))
        else:
            for number, (name, text) in enumerate(turn.as_texts()):
                items.append(self._function_call(number, name, text))
        if not isinstance(turn, Says) or turn.finish is not None:
            self._notify("response.completed", response=_response("completed", items))
        self.wfile.write(b"0\r\n\r\n")

    def _message(self, text: str) -> dict[str, Any]:
        at = {"output_index": 0, "item_id": "msg_1", "content_index": 0}
        item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress"}
        part: dict[str, Any] = {"type": "output_text", "text": "", "annotations": []}
        self._notify("response.output_item.added", output_index=0, item=item | {"content": []})
        self._notify("response.content_part.added", part=part, **at)
        for start in range(0, len(text), _PIECE_CHARS):
            piece = text[start : start + _PIECE_CHARS]
            self._notify("response.output_text.delta", delta=piece, logprobs=[], **at)
        self._notify("response.output_text.done", text=text, logprobs=[], **at)
        done = item | {"status": "completed", "content": [part | {"text": text}]}
        self._notify("response.output_item.done", output_index=0, item=done)
        return done

    def _function_call(self, number: int, name: str, arguments: str) -> dict[str, Any]:
        own = next(_call_numbers)
        at = {"output_index": number, "item_id": f"fc_{own}"}
        item = {"id": f"fc_{own}", "type": "function_call", "call_id": f"call_{own}"}
        item |= {"name": name, "arguments": "", "status": "in_progress"}
        self._notify("response.output_item.added", output_index=number, item=item)
        self._notify("response.function_call_arguments.delta", delta=arguments, **at)
        self._notify("response.function_call_arguments.done", arguments=arguments, name=name, **at)
        done = item | {"arguments": arguments, "status": "completed"}
        self._notify("response.output_item.done", output_index=number, item=done)
        return done

    def _notify(self, kind: str, **fields: Any) -> None:
        self._number += 1
        data = json.dumps({"type": kind, "sequence_number": self._number} | fields)
        self._raw(f"event: {kind}\ndata: {data}\n\n".encode())

    # Chat completions, and what both share

    def _begin(self) -> None:
        self._begin_stream()
        self._chunk({"role": "assistant", "content": ""})

    def _begin_stream(self) -> None:
        self._number = 0
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        self._event({"choices": [choice]})

    def _end(self, finish: str | None) -> None:
        if finish is not None:
            self._chunk({}, finish)
            self._event({"choices": [], "usage": USAGE})
            self._raw(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, fields: dict[str, Any]) -> None:
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "test"}
        self._raw(b"data: " + json.dumps(head | fields).encode() + b"\n\n")

    def _raw(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        """Not on our terminal."""


def _whole_completion(turn: Says | Calls) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(turn, Says):
        message["content"] = turn.text
    else:
        message["tool_calls"] = [
            {
                "id": f"call_{next(_call_numbers)}",
                "type": "function",
                "function": {"name": name, "arguments": text},
            }
            for name, text in turn.as_texts()
        ]
    finish = turn.finish if isinstance(turn, Says) else "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    head = {"id": "c1", "object": "chat.completion", "created": 1, "model": "test"}
    return head | {"choices": [choice], "usage": USAGE}


def _whole_response(turn: Says | Calls) -> dict[str, Any]:
    if isinstance(turn, Says):
        part: dict[str, Any] = {"type": "output_text", "text": turn.text, "annotations": []}
        item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed"}
        return _response("completed", [item | {"content": [part]}])
    items = [
        {
            "id": f"fc_{number}",
            "type": "function_call",
            "call_id": f"call_{number}",
            "name": name,
            "arguments": text,
            "status": "completed",
        }
        for number, (name, text) in zip(_call_numbers, turn.as_texts(), strict=False)
    ]
    return _response("completed", items)


def _response(status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    used = {
        "input_tokens": USAGE["prompt_tokens"],
        "output_tokens": USAGE["completion_tokens"],
        "total_tokens": USAGE["total_tokens"],
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": "test",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
        "usage": used if status == "completed" else None,
    }


@contextlib.contextmanager
def openai_server(*turns: Scripted) -> Generator[OpenAIServer]:
    """A server on a free port of this machine."""

    class Handler(_Handler):
        """Knows its server."""

    with serving(Handler) as port:
        running = Handler.running = OpenAIServer(port, list(turns))
        try:
            yield running
        finally:
            running.closing.set()
