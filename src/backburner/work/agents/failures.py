"""What is said when a model gives no answer: one clear sentence each, with what to do about it.

The provider's own words are shown only where they help, and never with a key in them. This module
knows the exceptions of pydantic-ai, so it is loaded with the built-in agent only.
"""

import os
import traceback
from collections.abc import Mapping

from pydantic_ai import exceptions

from backburner.model.redaction import HIDDEN, is_secret, redact_text

_WORDS_MAX_CHARS = 300
"""Of what a provider says."""

_KEY_MIN_CHARS = 8
"""A shorter value is no key, and would be found in any text."""


_SENTENCES: tuple[tuple[type[Exception], str, str], ...] = (
    (
        exceptions.ModelAuthenticationError,
        "the key for {model} was refused",
        "check the key in the environment",
    ),
    (
        exceptions.ModelNotFoundError,
        "the provider does not know the model {model}",
        "check BACKBURNER_MODEL",
    ),
    (
        exceptions.ModelContextWindowExceededError,
        "the conversation is too long for {model}",
        "ask for less at once, or choose a model with a larger context",
    ),
    (
        exceptions.ModelQuotaExceededError,
        "the account for {model} has no quota left",
        "see its billing page",
    ),
    (
        exceptions.ModelTimeoutError,
        "{model} did not answer in time",
        "try again, or raise BACKBURNER_MODEL_TIMEOUT",
    ),
    (
        exceptions.ModelConnectionError,
        "the connection to {model} failed or broke off",
        "check the network and try again",
    ),
    (
        exceptions.ModelUnavailableError,
        "the provider of {model} is not available",
        "try again later",
    ),
    (
        exceptions.ModelServerError,
        "the provider of {model} has a problem of its own",
        "try again later",
    ),
    (
        exceptions.ContentFilterError,
        "a content filter of {model} kept the answer back",
        "put the prompt otherwise",
    ),
    (
        exceptions.UsageLimitExceeded,
        "{model} came to no answer within the limits of a run",
        "ask for less at once",
    ),
)
"""The first that fits counts: some are kinds of others further down."""


def explained(error: Exception, model: str) -> str:
    """The failure in our words, with what to do about it."""
    message, remedy = _sentence(error, model)
    return f"{message} ({remedy})" if remedy else message


def _sentence(error: Exception, model: str) -> tuple[str, str]:
    for kind, message, remedy in _SENTENCES:
        if isinstance(error, kind):
            return message.format(model=model), remedy
    match error:
        case exceptions.ModelRateLimitError():
            return f"the rate limit of {model} was reached, again after retries", _later(error)
        case exceptions.ModelHTTPError():
            words = f": {_words(error.body)}" if _words(error.body) else ""
            return f"{model} refused the request (status {error.status_code}){words}", ""
        case exceptions.UserError():
            return f"{model} cannot be used: {_cut(error.message)}", "check BACKBURNER_MODEL"
        case RuntimeError() if "content type" in str(error) or "media type" in str(error):
            return f"{model} does not take an attachment of this kind: {_cut(str(error))}", ""
        case exceptions.ModelAPIError() if "finish_reason" in error.message:
            return f"the answer of {model} broke off", "try again"
        case _:
            # A stream of nonsense raises whatever the parser stumbled over.
            return f"{model} gave an answer that cannot be understood", "try again"


def _later(error: exceptions.ModelRateLimitError) -> str:
    if error.retry_after is not None and error.retry_after > 0:
        return f"try again in {error.retry_after:g} s"
    return "try again later"


def _words(body: object) -> str:
    """What the provider says of it, where that is a sentence."""
    if isinstance(body, Mapping):
        message: object = body.get("message")  # pyright: ignore[reportUnknownVariableType,reportUnknownMemberType]
        if isinstance(message, str):
            return _cut(message)
    return ""


def _cut(text: str) -> str:
    line = " ".join(without_keys(text).split())
    return line if len(line) <= _WORDS_MAX_CHARS else line[: _WORDS_MAX_CHARS - 1] + "…"


def without_keys(text: str) -> str:
    """The text without anything that is a key: by its name, or because the environment has it."""
    text = redact_text(text)
    for name, value in os.environ.items():
        named_so = name.upper().endswith("KEY") or is_secret(name)
        if named_so and len(value) >= _KEY_MIN_CHARS:
            text = text.replace(value, HIDDEN)
    return text


def chain_of(error: BaseException) -> str:
    """The whole chain for a log, without keys."""
    return without_keys("".join(traceback.format_exception(error)))
