"""The names of sessions and their owners."""

from backburner.model.errors import UsageError


def check_name(text: str) -> None:
    """Raise UsageError for a name that the record could not give back as it was.

    Bytes that are no UTF-8 reach Python as surrogates; no program could ask for such a session.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"{text!a} cannot be the name of a session or its owner: it is not UTF-8",
            remedy="choose another name; check the locale if it looks right",
        ) from None
    if "\0" in text:
        raise UsageError("the name of a session or its owner cannot hold a NUL")
