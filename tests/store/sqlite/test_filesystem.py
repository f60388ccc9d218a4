"""Homes on file systems that several machines share are refused, unless that is allowed."""

import os
from pathlib import Path

import pytest

from backburner import Backburner, StoreUnusable
from backburner.model.home import Home
from backburner.runtime.glance import Glance
from backburner.store.sqlite import filesystem
from backburner.store.sqlite.filesystem import is_network, kind_of
from tests.faults.victims import guardians_of, keepers_of
from tests.keeper.test_election import call_guardian
from tests.waiting import wait_until

TABLE = r"""21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 21 0:30 / /home rw shared:9 - nfs4 server:/home rw,vers=4.2
31 30 0:31 / /home/ada/local rw - xfs /dev/sdb rw
32 21 0:32 / /mnt/with\040blank rw - cifs //server/share rw
33 21 0:33 / /mnt/back\134slash rw - fuse.sshfs ada@server: rw
34 21 0:34 / /auto rw - autofs systemd-1 rw
35 34 0:35 / /auto rw - nfs server:/auto rw
36 21 0:36 / /homework rw - btrfs /dev/sdc rw
"""


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "mounts"
    path.write_text(TABLE)
    return str(path)


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "ext4"),
        ("/var/lib", "ext4"),
        ("/home", "nfs4"),
        ("/home/ada/.local/state/backburner", "nfs4"),
        ("/home/ada/local", "xfs"),
        ("/home/ada/local/deep/er", "xfs"),
        ("/home/ada/locals", "nfs4"),
        ("/homework/x", "btrfs"),
        ("/mnt/with blank/h", "cifs"),
        ("/mnt/back\\slash/h", "fuse.sshfs"),
        ("/auto/h", "nfs"),
    ],
)
def test_the_deepest_mount_counts_and_of_two_the_later(table: str, folder: str, kind: str) -> None:
    assert kind_of(folder, table) == kind


def test_links_are_followed(table: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/home/ada")
    assert kind_of(tmp_path / "link" / "h", table) == "nfs4"


@pytest.mark.parametrize("text", ["", "nonsense\n", "1 2 3 4 /\n", "\0\xff\n" * 3])
def test_a_table_that_makes_no_sense_is_unknown(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mounts"
    path.write_text(text, encoding="latin-1")
    assert kind_of("/x", str(path)) == "unknown"
    assert kind_of("/x", str(tmp_path / "missing")) == "unknown"


def test_the_real_table_knows_this_folder(tmp_path: Path) -> None:
    if os.path.exists(filesystem.MOUNTS):
        assert kind_of(tmp_path) != "unknown"
        assert not is_network(kind_of(tmp_path))


@pytest.mark.parametrize(
    "kind",
    [
        "nfs", "nfs4", "cifs", "smb3", "9p", "afs", "ceph", "lustre", "gfs2", "vboxsf",
        "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs", "fuse.gvfsd-fuse",
        "fuse.vmhgfs-fuse", "fuse.mount-s3", "fuse.ceph-fuse",
    ],
)  # fmt: skip
def test_file_systems_over_a_network(kind: str) -> None:
    assert is_network(kind)


@pytest.mark.parametrize(
    "kind",
    [
        "ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "f2fs", "fuseblk", "fuse.gocryptfs",
        "fuse.ntfs-3g", "fuse.encfs", "virtiofs", "unknown", "ecryptfs", "nfsd",
    ],
)  # fmt: skip
def test_file_systems_of_one_machine(kind: str) -> None:
    assert not is_network(kind)


@pytest.fixture
def on_nfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mounts"
    path.write_text("21 1 0:50 / / rw - nfs4 server:/export rw\n")
    monkeypatch.setattr(filesystem, "MOUNTS", str(path))


async def test_open_refuses_and_makes_nothing(on_nfs: None, tmp_path: Path) -> None:
    root = tmp_path / "home"
    with pytest.raises(StoreUnusable, match=r"network file system \(nfs4\)") as refusal:
        async with Backburner.open(root):
            pass
    assert "BACKBURNER_ALLOW_NETWORK_HOME=1" in refusal.value.remedy
    assert not root.exists()


async def test_a_record_that_is_there_is_not_even_looked_at(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Backburner.open(home):
        pass
    path = tmp_path / "mounts"
    path.write_text("21 1 0:50 / / rw - nfs4 server:/export rw\n")
    monkeypatch.setattr(filesystem, "MOUNTS", str(path))
    with pytest.raises(StoreUnusable, match="network file system"):
        Glance(Home(home))


async def test_it_can_be_allowed(on_nfs: None, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("0", "", "yes"):
        monkeypatch.setenv("BACKBURNER_ALLOW_NETWORK_HOME", value)
        with pytest.raises(StoreUnusable):
            async with Backburner.open(home):
                pass
    monkeypatch.setenv("BACKBURNER_ALLOW_NETWORK_HOME", "1")
    async with Backburner.open(home) as bb:
        task = await (await bb.session("s").run("exit 3")).wait(30)
        assert task.exit_code == 3


def test_a_keeper_does_not_wait_for_ever_on_a_network(home: Path, tmp_path: Path) -> None:
    """Its home was moved there: to hold the lock would help nobody."""
    import shutil
    import subprocess
    import sys

    import backburner

    package = tmp_path / "elsewhere" / "backburner"
    shutil.copytree(Path(backburner.__file__).parent, package)
    module = package / "store" / "sqlite" / "filesystem.py"
    mounts = tmp_path / "mounts"
    mounts.write_text("21 1 0:50 / / rw - nfs4 server:/export rw\n")
    module.write_text(module.read_text().replace("/proc/self/mountinfo", str(mounts)))
    done = subprocess.run(
        [sys.executable, "-m", "backburner.keeper", str(home)],
        env={**os.environ, "PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert "network file system" in done.stderr
    call_guardian(home)  # the ordinary one is none the worse
    wait_until(lambda: keepers_of(home) and guardians_of(home))
