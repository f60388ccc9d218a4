"""The file system that a home lies on: one that several machines share cannot hold the record.

SQLite in WAL mode, the locks and the sockets need all processes to be on one machine. On a network
file system it seems to work until two machines meet, and then the record is damaged. So such a
home is refused, unless BACKBURNER_ALLOW_NETWORK_HOME=1 says that one machine alone uses it.
"""

import os
import re
from pathlib import Path

from backburner.model.errors import StoreUnusable

ALLOW = "BACKBURNER_ALLOW_NETWORK_HOME"

MOUNTS = "/proc/self/mountinfo"

_NETWORK = re.compile(
    r"nfs4?|cifs|smb[23]|smbfs|9p|afs|coda|ncpfs|davfs|ceph|lustre|gpfs|beegfs|pvfs2|orangefs|gfs2|"
    r"ocfs2|vboxsf|vmhgfs|prl_fs|sshfs|glusterfs|fuse\.(?:.*ssh|s3|.*s3fs|mount-s3|goofys|gcsfuse|rclone|.*gluster|ceph|.*nfs|.*smb|juicefs|"
    r"davfs|webdav|curlftpfs|gvfsd|vmhgfs|moosefs|mfs|seaweed|lizardfs|blobfuse|onedriver|google).*"
)
_ESCAPE = re.compile(r"\\([0-7]{3})")


def kind_of(folder: str | os.PathLike[str], mounts: str | None = None) -> str:
    """The type of the file system that a folder is or will be on, as the mount table names it.

    "unknown" where there is no such table, which is the case on macOS.
    """
    best, kind = "", "unknown"
    real = os.path.realpath(folder)
    try:
        with open(mounts or MOUNTS, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                before, _, after = line.partition(" - ")
                point = before.split(" ")[4]
                if "\\" in point:
                    point = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), point)
                # Of two at one place the later one is on top.
                if len(point) >= len(best) and _is_below(real, point):
                    best, kind = point, after.split()[0]
    except (OSError, IndexError):
        pass
    return kind


def _is_below(path: str, point: str) -> bool:
    return path == point or path.startswith(point if point.endswith("/") else f"{point}/")


def is_network(kind: str) -> bool:
    """Whether another machine may have the same files."""
    return _NETWORK.fullmatch(kind) is not None


def refused_kind(root: Path) -> str | None:
    """The network file system that keeps this folder from being a home; None where none does."""
    if os.environ.get(ALLOW) == "1":
        return None
    kind = kind_of(root)
    return kind if is_network(kind) else None


def refuse_network(root: Path) -> None:
    """Raise StoreUnusable for a home that several machines may share, unless that is allowed."""
    kind = refused_kind(root)
    if kind is not None:
        raise StoreUnusable(
            f"the home {root} is on a network file system ({kind}), which can damage the record",
            remedy="choose a home on a local disk with --home or BACKBURNER_HOME; "
            f"{ALLOW}=1 allows it where one machine alone uses it",
        )
