"""Keeping the platforms' libraries from saying secrets: in their logs, and in their errors.

Telegram's token is part of every address, and Slack's and Discord's go over their sockets: what
the libraries log below a warning shows them. Who wants it all the same sets the level of that
logger, and is left alone.
"""

import logging

from backburner.model.redaction import without

_REASON_CHARS = 300


def quieten(*loggers: str) -> None:
    """Let these say warnings and worse, unless somebody has chosen their level."""
    for name in loggers:
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.WARNING)


def reason(error: BaseException, *secrets: str | None) -> str:
    """What went wrong, on one line, without the secrets."""
    said = without(f"{error}" or type(error).__name__, {each for each in secrets if each})
    line = " ".join(said.split())
    return line if len(line) <= _REASON_CHARS else line[: _REASON_CHARS - 1] + "…"
