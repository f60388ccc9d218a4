"""Pictures and files that come with an answer: a copy of each is kept with the task."""

import mimetypes
import os
from collections.abc import Iterable, Sequence

from backburner.model.errors import BackburnerError
from backburner.model.home import AttemptFolder
from backburner.model.limits import Settings
from backburner.model.outcome import Image
from backburner.work import artifacts

Media = Sequence[Image | str]
"""Pictures, and paths of files."""


def as_media(given: Iterable[Image | str | os.PathLike[str]]) -> Media:
    """The same, with paths as texts."""
    return tuple(each if isinstance(each, Image) else os.fspath(each) for each in given)


def keep(media: Media, folder: AttemptFolder, limits: Settings) -> tuple[list[str], list[str]]:
    """Keep copies among the artifacts of the task.

    Answers where they lie, and why others could not be kept: an answer is not lost for a picture.
    """
    os.makedirs(folder.path, mode=0o700, exist_ok=True)  # there may be no log yet
    kept: list[str] = []
    refused: list[str] = []
    for number, each in enumerate(media, start=1):
        try:
            kept.append(_keep_one(each, number, folder, limits))
        except BackburnerError as error:
            refused.append(str(error))
        except OSError as error:
            refused.append(f"a file could not be kept: {error.strerror}")
    return kept, refused


def _keep_one(each: Image | str, number: int, folder: AttemptFolder, limits: Settings) -> str:
    if isinstance(each, str):
        return artifacts.add(folder, each, None, limits).path
    ending = mimetypes.guess_extension(each.media_type) or ""
    name = each.name or f"image-{number}{ending}"
    # A file without a name, so that nothing is left of it whatever happens.
    fd = os.memfd_create("image")
    with os.fdopen(fd, "wb") as file:
        file.write(each.data)
        file.flush()
        return artifacts.add(folder, f"/proc/self/fd/{fd}", name, limits).path
