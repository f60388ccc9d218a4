"""What a gateway must not forget when it is killed: one file of JSON lines, for its owner alone.

It holds what was heard and is not dealt with, the letters on their way and which of their posts
were made, and the posts that show a task live. A line is one write; the file is read once, at the
start, and written anew when it has grown. All of it is bounded.
"""

import contextlib
import errno
import json
import os
import time
from collections.abc import Iterator
from typing import Any, cast

from backburner.gateway.letters import Letter, place_document, place_of
from backburner.gateway.platform import Message, Person, Place, Press
from backburner.model.values import value

KNOWN_MAX = 5_000
"""Of what was heard, and of signals that were told: a platform repeats the last ones only."""

ANNOUNCED_S = 600.0
"""Whoever announces an answer and writes something after this means something else."""

CARDS_MAX = 1_000
_LINES_MAX = 20_000
_BYTES_MAX = 16 * 1024 * 1024

Entry = dict[str, Any]


@value
class Card:
    """The post that shows a task while it runs."""

    task: str
    owner: str
    session: str
    place: Place
    post: str


@value
class Unfinished:
    """Something that was heard before the gateway was killed."""

    heard: Message | Press
    begun: bool
    """Whether it may have been carried out already."""


class Journal:
    """Of one gateway, which holds the lock of its platform."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._heard: dict[str, Entry | None] = {}
        """By key: what was heard; None when it was dealt with."""
        self._letters: dict[str, Letter] = {}
        self._posted: dict[str, list[str | None]] = {}
        """The posts of a letter on its way that were made; None for a file."""
        self._told: dict[str, str] = {}
        """By key of a signal: the letter that tells it."""
        self._sent: dict[str, str | None] = {}
        """Letters that have arrived, in that order, with the last post of their text."""
        self._cards: dict[str, Card] = {}
        self._awaited: dict[str, Entry] = {}
        self._lines = 0
        self._bytes = 0
        for entry in _read(path):
            # Of another version: its own business.
            with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
                self._apply(entry)
        self._fd = self._write_anew()

    def close(self) -> None:
        """Nothing more is written."""
        os.close(self._fd)

    # What was heard

    def hear(self, heard: Message | Press) -> bool:
        """Note it, unless that was done before: platforms tell of a thing twice."""
        if self.knows(heard):
            return False
        self._note({"heard": _heard_key(heard), "what": _heard_document(heard)})
        return True

    def knows(self, heard: Message | Press) -> bool:
        """Whether it was noted before."""
        return _heard_key(heard) in self._heard

    def begin(self, heard: Message | Press) -> None:
        """It is carried out from now on."""
        self._note({"begun": _heard_key(heard)})

    def finish(self, heard: Message | Press) -> None:
        """It was dealt with."""
        self._note({"done": _heard_key(heard)})

    def unfinished(self) -> list[Unfinished]:
        """What was heard and not dealt with, in that order."""
        return [
            Unfinished(_heard_of(entry), bool(entry.get("begun")))
            for entry in self._heard.values()
            if entry is not None
        ]

    # Letters

    def record(self, letter: Letter) -> Letter:
        """Before it is sent. The one of this name that is on its way already is the one to send."""
        known = self._letters.get(letter.id)
        if known is None:
            self._note({"letter": letter.document()})
        return known or letter

    def has_sent(self, letter_id: str) -> bool:
        """Whether this letter has arrived."""
        return letter_id in self._sent

    def posted(self, letter_id: str) -> int:
        """How many of its posts were made."""
        return len(self._posted.get(letter_id, ()))

    def post_made(self, letter_id: str, post: str | None) -> None:
        """One more; its id where it is one of text."""
        self._note({"posted": letter_id, "post": post})

    def last_post(self, letter_id: str) -> str | None:
        """The last post of the text of a letter that has arrived."""
        return self._sent.get(letter_id)

    def arrived(self, letter_id: str) -> None:
        """All of it."""
        self._note({"sent": letter_id})

    def letter_telling(self, key: str) -> str | None:
        """The name of the letter that tells this signal, on its way or arrived."""
        return self._told.get(key)

    def on_its_way(self, letter_id: str) -> Letter | None:
        """A letter that was recorded and has not arrived."""
        return self._letters.get(letter_id)

    def waiting(self, place: Place) -> list[Letter]:
        """What this place is to be told of signals and has not been, in the order of recording."""
        return [each for each in self._letters.values() if each.covers and each.place == place]

    # Answers that somebody has announced

    def await_answer(self, who: str, task: str, question: str) -> None:
        """The next plain message of theirs answers this."""
        self._note({"awaits": who, "task": task, "question": question, "at": time.time()})

    def take_awaited(self, who: str) -> tuple[str, str] | None:
        """The task and the question that this message answers; once, and not after long."""
        found = self._awaited.get(who)
        if found is None:
            return None
        self._note({"awaits": who, "task": None})
        fresh = 0 <= time.time() - found["at"] <= ANNOUNCED_S
        return (found["task"], found["question"]) if fresh else None

    # Cards

    def show(self, card: Card) -> None:
        """From now on this post shows the task."""
        self._note({"card": card.task, **_card_document(card)})

    def drop_card(self, task: str) -> None:
        """It shows the end, or is gone."""
        if task in self._cards:
            self._note({"card": task, "post": None})

    @property
    def cards(self) -> list[Card]:
        """Those that may still change."""
        return list(self._cards.values())

    # The file

    def _note(self, entry: Entry) -> None:
        """On disk first: what could not be written was not noted. OSError."""
        self._append(_line(entry))
        if "heard" in entry or "begun" in entry:
            # The platform counts on us from now on. Of all else a power failure repeats a post.
            os.fdatasync(self._fd)
        self._apply(entry)
        if self._lines >= _LINES_MAX or self._bytes >= _BYTES_MAX:
            with contextlib.suppress(OSError):  # a full disk: it goes on in the old one
                new = self._write_anew()
                os.close(self._fd)
                self._fd = new

    def _append(self, line: bytes) -> None:
        """All of the line, or nothing of it."""
        size = os.fstat(self._fd).st_size
        try:
            written = os.write(self._fd, line)
        except OSError:
            os.ftruncate(self._fd, size)
            raise
        if written < len(line):
            os.ftruncate(self._fd, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
        self._lines += 1
        self._bytes += len(line)

    def _apply(self, entry: Entry) -> None:
        match entry:
            case {"heard": str(key), "what": what}:
                _heard_of(what)  # it can be dealt with
                self._heard[key] = what
            case {"begun": str(key)}:
                if (heard := self._heard.get(key)) is not None:
                    self._heard[key] = {**heard, "begun": True}
            case {"done": str(key)}:
                self._heard.pop(key, None)
                self._heard[key] = None
                _drop_oldest(self._heard, KNOWN_MAX, only_done=True)
            case {"letter": document}:
                letter = Letter.of(document)
                self._letters[letter.id] = letter
                _drop_oldest(self._letters, KNOWN_MAX)
                self._told.update(dict.fromkeys(letter.covers, letter.id))
                _drop_oldest(self._told, KNOWN_MAX)
            case {"posted": str(letter_id), "post": post}:
                self._posted.setdefault(letter_id, []).append(post)
            case {"sent": str(letter_id), **more}:
                self._letters.pop(letter_id, None)
                texts = [each for each in self._posted.pop(letter_id, ()) if each is not None]
                self._sent[letter_id] = texts[-1] if texts else more.get("post")
                covers = cast("list[str]", more.get("covers", []))
                self._told.update(dict.fromkeys(covers, letter_id))
                _drop_oldest(self._sent, KNOWN_MAX)
            case {"awaits": str(who), "task": None}:
                self._awaited.pop(who, None)
            case {"awaits": str(who), "question": str(), "at": float()}:
                self._awaited[who] = entry
                _drop_oldest(self._awaited, CARDS_MAX)
            case {"card": str(task), "post": None}:
                self._cards.pop(task, None)
            case {"card": str(task)}:
                self._cards[task] = _card_of(task, entry)
                _drop_oldest(self._cards, CARDS_MAX)
            case _:
                pass  # of a later version: its own business

    def _state(self) -> Iterator[Entry]:
        """Everything that counts, as lines."""
        for key, what in self._heard.items():
            if what is None:
                yield {"done": key}
            else:
                yield {"heard": key, "what": what}
        covers: dict[str, list[str]] = {}
        for key, letter_id in self._told.items():
            covers.setdefault(letter_id, []).append(key)
        for letter_id, post in self._sent.items():
            yield {"sent": letter_id, "post": post, "covers": covers.get(letter_id, [])}
        for letter in self._letters.values():
            yield {"letter": letter.document()}
            for post in self._posted.get(letter.id, ()):
                yield {"posted": letter.id, "post": post}
        yield from self._awaited.values()
        for card in self._cards.values():
            yield {"card": card.task, **_card_document(card)}

    def _write_anew(self) -> int:
        new = f"{self._path}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(new, flags, 0o600)
        try:
            lines = [_line(entry) for entry in self._state()]
            with open(fd, "wb", closefd=False) as file:
                file.writelines(lines)
            os.fdatasync(fd)
            os.rename(new, self._path)
        except BaseException:
            os.close(fd)
            raise
        # Half: so that a full journal is not written anew for each line.
        self._lines, self._bytes = len(lines) // 2, sum(map(len, lines)) // 2
        return fd


def _read(path: str) -> Iterator[Entry]:
    """The lines that can be read: the last one may be half of one."""
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        for line in file:
            with contextlib.suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict):
                    yield cast("Entry", entry)


def _line(entry: Entry) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def _drop_oldest(known: dict[str, Any], limit: int, *, only_done: bool = False) -> None:
    while len(known) > limit:
        oldest = next((key for key, what in known.items() if not only_done or what is None), None)
        if oldest is None:
            return
        del known[oldest]


def _heard_key(heard: Message | Press) -> str:
    """Keys are unique in a chat; a press and a message may have the same."""
    kind = "m" if isinstance(heard, Message) else "p"
    return f"{kind} {heard.place.chat} {heard.key}"


def _heard_document(heard: Message | Press) -> Entry:
    said: Entry = (
        {"text": heard.text, "uploads": len(heard.uploads)}
        if isinstance(heard, Message)
        else {"action": heard.action, "post": heard.post_id}
    )
    person = [heard.person.id, heard.person.name]
    return {"key": heard.key, "place": place_document(heard.place), "person": person, **said}


def _heard_of(entry: Entry) -> Message | Press:
    place, person = place_of(entry["place"]), Person(*entry["person"])
    if "action" in entry:
        return Press(entry["key"], place, person, entry["action"], entry["post"])
    text = entry["text"]
    if entry["uploads"]:
        text = f"{text}\n[files that came with this were lost in a restart: send them again]"
    return Message(entry["key"], place, person, text)


def _card_document(card: Card) -> Entry:
    return {
        "owner": card.owner,
        "session": card.session,
        "place": place_document(card.place),
        "post": card.post,
    }


def _card_of(task: str, entry: Entry) -> Card:
    place = place_of(entry["place"])
    return Card(task, entry["owner"], entry["session"], place, entry["post"])
