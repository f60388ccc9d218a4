"""Opening a file that somebody names: whatever is wrong with it is said in their words."""

import os

from backburner.model.errors import NotAllowed, NotFound, UsageError


def open_to_read(path: str) -> int:
    """A descriptor; the caller looks at what it is."""
    try:
        # Not waiting, in case it is a pipe without a writer.
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"there is no file {path!r}") from None
    except PermissionError:
        raise NotAllowed(f"{path!r} cannot be read: permission denied") from None
    except ValueError:
        raise UsageError("the name of a file cannot contain a NUL character") from None
    except OSError as error:
        raise UsageError(f"{path!r} cannot be read: {error.strerror}") from None
