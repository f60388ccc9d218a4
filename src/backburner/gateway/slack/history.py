"""What we posted in a place, found in Slack's own history by the key in each post's metadata.

Read once for a place, when something is posted there for the first time since the start, and again
after a post whose fate is unknown: so a post is not made twice, also after a crash in between.
A file has no metadata: the key is a part of its name.
"""

import hashlib
import os.path
import time
from collections import OrderedDict
from typing import Any

from backburner.gateway.platform import Place
from backburner.gateway.slack.web_api import WebApi

EVENT = "backburner_post"

_PLACES = 500
"""Of which we know what is there; others are read again."""
_KEYS = 2_000
"""Of a place: the oldest are forgotten, nobody tries them again."""
_PAGE = 200
_MOST_PAGES = 25
_LOOK_BACK_S = 7 * 24 * 3600
"""A thread is read from its beginning: without a bound, a long one never to its end."""


class History:
    """The keys of our posts in each place, with the ids of the posts."""

    def __init__(self, api: WebApi) -> None:
        self._api = api
        self._known: OrderedDict[Place, dict[str, str]] = OrderedDict()

    async def find(self, place: Place, key: str) -> str | None:
        """The id of what was posted there with this key; None where nothing was."""
        if place not in self._known:
            self._known[place] = await self._read(place)
            if len(self._known) > _PLACES:
                self._known.popitem(last=False)
        self._known.move_to_end(place)
        return self._known[place].get(key)

    def note(self, place: Place, key: str, post_id: str) -> None:
        """This was posted there."""
        known = self._known.get(place)
        if known is not None:
            known[key] = post_id
            if len(known) > _KEYS:
                del known[next(iter(known))]

    def doubt(self, place: Place) -> None:
        """Something was posted there, perhaps."""
        self._known.pop(place, None)

    async def _read(self, place: Place) -> dict[str, str]:
        found: dict[str, str] = {}
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._page(place, cursor)
            messages: list[dict[str, Any]] = page.get("messages") or []
            for message in messages:
                _note(message, found)
            more: dict[str, Any] = page.get("response_metadata") or {}
            cursor = more.get("next_cursor")
            if not cursor:
                break
        return found

    async def _page(self, place: Place, cursor: str | None) -> dict[str, Any]:
        in_thread = {} if place.thread is None else {"ts": place.thread}
        return await self._api.call(
            "conversations.replies" if in_thread else "conversations.history",
            channel=place.chat,
            limit=_PAGE,
            include_all_metadata=True,
            oldest=f"{time.time() - _LOOK_BACK_S:.6f}",
            cursor=cursor,
            **in_thread,
        )


def _note(message: dict[str, Any], found: dict[str, str]) -> None:
    metadata: dict[str, Any] = message.get("metadata") or {}
    if metadata.get("event_type") == EVENT:
        payload: dict[str, Any] = metadata.get("event_payload") or {}
        found[str(payload.get("key"))] = str(message.get("ts"))
    files: list[dict[str, Any]] = message.get("files") or []
    for file in files:
        found[str(file.get("name"))] = str(file.get("id"))


def metadata_of(key: str) -> dict[str, Any]:
    """What a post carries, and people do not see."""
    return {"event_type": EVENT, "event_payload": {"key": key}}


def file_name(name: str, key: str) -> str:
    """The name of a file in which its post's key can be found again; people see its title."""
    stem, ending = os.path.splitext(name)
    return f"{stem}-{hashlib.sha256(key.encode()).hexdigest()[:12]}{ending}"
