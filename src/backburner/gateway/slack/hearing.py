"""What Slack tells, as the gateway hears it: messages, slash commands, buttons. Touches nothing.

In a channel only what is said to the bot counts: a slash command, a mention, or what is written in
a thread that began with a post of its. What is said in a channel is answered in its thread.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from backburner.gateway.platform import Heard, Message, Person, Place, Press, Refused, Upload
from backburner.gateway.slack.wording import ACTION, unmarked

Fetch = Callable[[str, int], Awaitable[bytes]]
"""A file by its address, of at most so many bytes."""

_SAID = {None, "file_share", "thread_broadcast"}
"""Kinds of messages that are something that somebody said; the others tell of changes."""


def understood(body: dict[str, Any], me: str, fetch: Fetch) -> Heard | None:
    """What somebody wrote or pressed; None for all that is not for us."""
    try:
        if "command" in body:
            return _commanded(body)
        if body.get("type") == "block_actions":
            return _pressed(body)
        if body.get("type") == "event_callback":
            return _said(body["event"], me, fetch)
    except (KeyError, TypeError, IndexError, AttributeError):
        return None  # not as Slack writes it
    return None


def _commanded(body: dict[str, Any]) -> Message:
    return Message(
        key=str(body["trigger_id"]),
        place=Place(str(body["channel_id"])),
        person=Person(str(body["user_id"]), str(body.get("user_name", body["user_id"]))),
        text=f"{body['command']} {unmarked(str(body.get('text', '')))}".rstrip(),
    )


def _pressed(body: dict[str, Any]) -> Press | None:
    action, where = body["actions"][0], body["container"]
    if not str(action["action_id"]).startswith(ACTION):
        return None
    thread = where.get("thread_ts") or body.get("message", {}).get("thread_ts")
    return Press(
        key=f"{action['action_ts']}:{body['user']['id']}",
        place=Place(str(where["channel_id"]), thread),
        person=Person(str(body["user"]["id"]), str(body["user"].get("username", ""))),
        action=str(action["value"]),
        post_id=str(where["message_ts"]),
    )


def _said(event: dict[str, Any], me: str, fetch: Fetch) -> Message | None:
    if event["type"] not in {"message", "app_mention"} or event.get("subtype") not in _SAID:
        return None
    user, text = event.get("user"), str(event.get("text", ""))
    if event.get("bot_id") or not user or user == me:
        return None
    private = event.get("channel_type") == "im"
    if not (private or f"<@{me}>" in text or event.get("parent_user_id") == me):
        return None
    thread = event.get("thread_ts") or (None if private else event["ts"])
    mention = re.compile(rf"\s*<@{re.escape(me)}(?:\|[^>]*)?>[\s,:]*")
    if mention.match(text):
        text = mention.sub("", text, count=1)
    uploads = tuple(_upload(each, fetch) for each in event.get("files", []))
    if not text.strip() and not uploads:
        return None
    return Message(
        key=f"{event['channel']}:{event['ts']}",
        place=Place(str(event["channel"]), thread),
        person=Person(str(user), str(user)),
        text=unmarked(text),
        uploads=uploads,
    )


def _upload(file: dict[str, Any], fetch: Fetch) -> Upload:
    size = file.get("size")
    address = str(file.get("url_private_download") or file.get("url_private") or "")

    async def fetched(most: int) -> bytes:
        if isinstance(size, int) and size > most:
            raise Refused(f"the file is larger than {most} bytes")
        return await fetch(address, most)

    name, kind = str(file.get("name") or "file"), file.get("mimetype")
    return Upload(name, str(kind or "application/octet-stream"), size, fetched)
