"""Keeping the platforms' libraries from saying secrets, or pages, in their logs and errors.

Telegram's token is part of every address, and Slack's and Discord's go over their sockets. What
goes wrong reaches the adapters as an error, and they say it in a line of their own. Who wants to
see what a library logs sets the level of its logger, and is left alone.
"""

import logging

from backburner.model.redaction import without

_REASON_CHARS = 300
_NOTHING = logging.CRITICAL + 1


def quieten(*loggers: str) -> None:
    """Let these say nothing, unless somebody has chosen their level."""
    for name in loggers:
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(_NOTHING)


def reason(error: object, *secrets: str | None) -> str:
    """What went wrong, on one line, without the secrets."""
    said = without(str(error) or type(error).__name__, {each for each in secrets if each})
    line = " ".join(said.split())
    return line if len(line) <= _REASON_CHARS else line[: _REASON_CHARS - 1] + "…"


class InOneLine(logging.Filter):
    """For the logger of a library that tells its troubles nowhere else."""

    def __init__(self, *secrets: str) -> None:
        super().__init__()
        self._secrets = secrets

    def filter(self, record: logging.LogRecord) -> bool:
        """Let it through, short and without a traceback."""
        record.msg, record.args = reason(record.getMessage(), *self._secrets), ()
        record.exc_info = record.exc_text = record.stack_info = None
        return True
