"""Whatever connects to a job's input, the job and the other clients do not notice."""

import contextlib
import os
import socket
import stat
from pathlib import Path

import pytest

from backburner.model.errors import TimeIsUp
from backburner.model.home import AttemptFolder
from backburner.work.holder import frames
from backburner.work.holder.frames import FrameReader, frame
from backburner.work.holder.launch import listen
from backburner.work.input import send, send_eof
from backburner.work.process.condition import Ended
from tests.waiting import wait_until
from tests.work.holder.conftest import Held, StartHeld

pytestmark = pytest.mark.slow  # short ones, and many: together they take long


def connected(job: Held) -> socket.socket:
    """A client that says what it likes."""
    at = os.open(job.folder.path, os.O_RDONLY)
    line = socket.socket(socket.AF_UNIX)
    line.connect(f"/proc/self/fd/{at}/input")
    line.settimeout(10)
    os.close(at)
    return line


def answers(line: socket.socket) -> list[tuple[bytes, bytes]]:
    """Everything that it is told until it is hung up on."""
    reader = FrameReader(frames.ANSWERS)
    found: list[tuple[bytes, bytes]] = []
    while True:
        try:
            data = line.recv(65536)
        except ConnectionResetError:
            return found
        if not data:
            return found
        found += reader.feed(data)


@pytest.fixture(params=["pipe", "pty"])
def job(request: pytest.FixtureRequest, hold: StartHeld) -> Held:
    return hold("cat", input=request.param)


def goes_on(job: Held) -> None:
    send(job.folder, b"well\n")
    job.said("well")
    send_eof(job.folder)
    assert job.ended() == Ended(0, by_signal=False)


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0" * 4096,
        frames.DATA + b"\xff\xff\xff\xff" + b"x" * 1000,
        frame(frames.OUTPUT, b"hello"),
        frame(frames.RESIZE, b"123"),
        frame(frames.RESIZE, b"12345"),
        os.urandom(65536),
    ],
)
def test_who_sends_garbage_is_told_and_hung_up_on(job: Held, garbage: bytes) -> None:
    with connected(job) as line:
        line.sendall(garbage)
        assert answers(line)[-1:] in ([(frames.NO, frames.GARBAGE)], [])
    goes_on(job)


def test_half_a_frame_is_waited_for_and_forgotten_with_its_sender(job: Held) -> None:
    with connected(job) as line:
        line.sendall(frame(frames.DATA, b"never whole")[:-1])
        send(job.folder, b"others\n")
        job.said("others")
    goes_on(job)
    assert b"never" not in job.output()


def test_who_hangs_up_in_the_middle_of_anything_is_forgotten(job: Held) -> None:
    for request in (frames.ATTACH, frames.DATA, frames.EOF[:0], frames.CANCEL):
        line = connected(job)
        line.sendall(frame(request) if request else b"\x44")
        line.close()
    goes_on(job)


def test_silent_ones_cannot_keep_others_away(job: Held) -> None:
    """The oldest that asks for nothing goes."""
    silent = [connected(job) for _ in range(100)]
    goes_on(job)
    for line in silent:
        line.close()


def test_there_is_an_end_to_how_many_are_attached(hold: StartHeld) -> None:
    job = hold("cat", input="pty")
    lines = [connected(job) for _ in range(32)]
    for line in lines:
        line.sendall(frame(frames.ATTACH))
        assert line.recv(5) == frame(frames.OK)
    with connected(job) as one_more:
        assert answers(one_more) == [(frames.NO, frames.CROWDED)]
    for line in lines:
        line.close()
    wait_until(lambda: _heard(job))
    goes_on(job)


def _heard(job: Held) -> bool:
    with connected(job) as line:
        line.sendall(frame(frames.DATA, b"\n"))
        return (frames.OK, b"") in FrameReader(frames.ANSWERS).feed(line.recv(100))


def test_who_does_not_wait_for_an_answer_is_hung_up_on(hold: StartHeld) -> None:
    job = hold("sleep", "60")
    with connected(job) as line:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(50):
                line.sendall(frame(frames.DATA, bytes(frames.MAX_PAYLOAD)))
        assert answers(line)[-1:] in ([(frames.NO, frames.GARBAGE)], [])
    with connected(job) as line:  # and others are still heard
        line.sendall(frame(frames.EOF))
        assert line.recv(5) == frame(frames.OK)


def test_a_withdrawn_piece_is_not_taken(hold: StartHeld, tmp_path: Path) -> None:
    job = hold(f"until [ -e {tmp_path}/go ]; do sleep 0.01; done; wc -c")
    with connected(job) as line:
        reader = FrameReader(frames.ANSWERS)
        taken = 0
        full = False
        while not full:
            line.sendall(frame(frames.DATA, bytes(frames.MAX_PAYLOAD)))
            line.sendall(frame(frames.CANCEL))
            ((kind, _),) = wait_until(lambda: reader.feed(line.recv(100)))
            full = kind == frames.NO
            taken += 0 if full else frames.MAX_PAYLOAD
        line.sendall(frame(frames.EOF))
        assert reader.feed(line.recv(100)) == [(frames.OK, b"")]
    (tmp_path / "go").touch()
    job.ended()
    assert int(job.output()) == taken


def test_only_its_owner_may_connect(job: Held) -> None:
    status = Path(job.folder.input).stat()
    assert stat.S_ISSOCK(status.st_mode)
    assert stat.S_IMODE(status.st_mode) == 0o600
    goes_on(job)


def test_a_long_path_is_no_obstacle(tmp_path: Path) -> None:
    """A socket's path may have 107 bytes."""
    folder = AttemptFolder(str(tmp_path / ("long" * 20) / ("long" * 20)))
    os.makedirs(folder.path)
    with listen(folder), pytest.raises(TimeIsUp, match="does not answer"):
        send(folder, b"x", patience_s=0.01)
