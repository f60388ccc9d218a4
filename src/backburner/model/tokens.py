"""Tokens: what a caller of the HTTP API shows, and what it stands for.

A token is `bb_`, its name, and 256 random bits. The record has the name and a hash of the whole:
whoever reads the record cannot use it. No slow hash is needed, because nobody guesses 256 bits.
"""

import hashlib
import hmac
import re
import secrets
from dataclasses import field, replace
from typing import Any

from backburner.model import ids
from backburner.model.clock import Instant, rfc3339
from backburner.model.policy import Role
from backburner.model.values import value

PREFIX = "bb_"
LABEL_MAX_CHARS = 100

USED_EVERY_S = 600.0
"""How exactly the last use of a token is known: each time that it is noted is a write."""

_TOKEN = re.compile(r"bb_([0-9a-hjkmnp-tv-z]{16})_[A-Za-z0-9_-]{43}", re.ASCII)


@value
class Token:
    """One row of the record: who its holder is, and what they may do."""

    id: str
    owner: str
    role: Role
    session: str | None
    """The only session that its holder sees; None for all of the owner."""
    label: str
    """What it is for, in the words of whoever made it."""
    digest: str = field(repr=False)
    created_at: Instant
    expires_at: Instant | None = None
    last_used_at: Instant | None = None
    """To the nearest ten minutes."""
    revoked_at: Instant | None = None
    parent: str | None = None
    """The token that it was traded for, and with which it ends."""

    def holds(self, now: Instant) -> bool:
        """Whether it still opens anything."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    def fits(self, text: str) -> bool:
        """Whether this is its text; takes the same time however much of it is right."""
        return hmac.compare_digest(self.digest, digest_of(text))

    def document(self) -> dict[str, Any]:
        """As JSON, without anything that would help to guess it."""
        return {
            "id": self.id,
            "label": self.label,
            "owner": self.owner,
            "role": self.role.value,
            "session": self.session,
            "parent": self.parent,
            "created_at": rfc3339(self.created_at),
            "expires_at": _time(self.expires_at),
            "last_used_at": _time(self.last_used_at),
            "revoked_at": _time(self.revoked_at),
        }


def _time(instant: Instant | None) -> str | None:
    return None if instant is None else rfc3339(instant)


def new_token(
    owner: str,
    role: Role,
    *,
    session: str | None,
    label: str,
    now: Instant,
    expires_at: Instant | None,
) -> tuple[Token, str]:
    """A fresh token, and its text, which is nowhere else."""
    name = ids.new_id().removeprefix(ids.PREFIX)
    text = f"{PREFIX}{name}_{secrets.token_urlsafe(32)}"
    return Token(name, owner, role, session, label, digest_of(text), now, expires_at), text


def digest_of(text: str) -> str:
    """What the record has of it."""
    return hashlib.sha256(text.encode()).hexdigest()


def text_in(authorization: str) -> str:
    """The text of a token in such a header; empty where it holds none."""
    kind, _, text = authorization.partition(" ")
    return text.strip() if kind.lower() == "bearer" else ""


def name_in(text: str) -> str | None:
    """The name of a token in its text; None where that cannot be a token."""
    found = _TOKEN.fullmatch(text)
    return found[1] if found else None


NOBODY = replace(new_token("", Role.VIEWER, session=None, label="", now=0, expires_at=0)[0], id="")
"""Compared with where there is no such token, so that this takes as long."""
