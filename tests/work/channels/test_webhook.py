"""Webhooks: signed as the standard says, and unimpressed by whatever answers."""

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from standardwebhooks import WebhookVerificationError

from backburner.work.channels.outcome import Delivered, Failed, Gone, Outcome
from backburner.work.channels.webhook import Request, new_secret, sign
from tests.receiver import LATER_S, Receiver, receiver
from tests.work.channels.letters import a_letter

SECRET = new_secret()


@pytest.fixture(scope="module")
def server() -> Iterator[Receiver]:
    with receiver() as running:
        yield running


def send(url: str, *, limit_s: float = 10, allow_private: bool = True) -> Outcome:
    request = Request(url, SECRET, a_letter(), limit_s=limit_s, allow_private=allow_private)
    return request.carry_out()


def reason(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed), outcome
    assert outcome.reason.isprintable()
    return outcome.reason


def test_the_signature_is_that_of_the_standard() -> None:
    """The example that every implementation of Standard Webhooks is checked with."""
    signature = sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_secrets_are_new_each_time_and_of_the_standards_form() -> None:
    assert SECRET.startswith("whsec_")
    assert new_secret() != SECRET


def test_x1_the_receiver_can_check_what_it_got(server: Receiver) -> None:
    before = len(server.received)
    assert send(server.url("/ok?a=1&b=%20")) == Delivered()
    (got,) = server.received[before:]
    assert got.path == "/ok?a=1&b=%20"
    assert got.key == "bg_1:end@hook"
    assert abs(int(got.headers["webhook-timestamp"]) - time.time()) < 60
    assert got.headers["content-type"] == "application/json"
    assert got.headers["host"] == f"127.0.0.1:{server.port}"
    document = got.verified(SECRET)
    assert document["type"] == "backburner.task.completed"
    assert document["timestamp"] == "2027-01-15T08:00:00.000000Z"
    assert document["data"]["signal"]["key"] == got.key
    assert document["data"]["task"] == {"id": "bg_1", "state": "succeeded"}
    with pytest.raises(WebhookVerificationError):
        got.verified(new_secret())


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_every_success_is_a_delivery(server: Receiver, status: int) -> None:
    assert send(server.url(f"/status/{status}")) == Delivered()


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503, 599])
def test_every_refusal_is_tried_again(server: Receiver, status: int) -> None:
    said = reason(send(server.url(f"/status/{status}")))
    assert said.startswith(f"it answered {status}")
    assert "hostile" not in said


def test_410_means_never_again(server: Receiver) -> None:
    outcome = send(server.url("/gone"))
    assert isinstance(outcome, Gone)
    assert "410" in outcome.reason


def test_a_receiver_that_asks_for_time_gets_it(server: Receiver) -> None:
    outcome = send(server.url("/later"))
    assert isinstance(outcome, Failed)
    assert outcome.wait_s == LATER_S


def test_redirects_are_not_followed(server: Receiver) -> None:
    before = len(server.received)
    assert "redirects are not followed" in reason(send(server.url("/redirect")))
    assert [got.path for got in server.received[before:]] == ["/redirect"]


@pytest.mark.parametrize("path", ["/garbage", "/silent", "/headers"])
def test_what_is_no_http_is_a_failure(server: Receiver, path: str) -> None:
    assert reason(send(server.url(path)))


def test_a_huge_answer_is_not_read(server: Receiver) -> None:
    began = time.monotonic()
    assert send(server.url("/huge")) == Delivered()
    assert time.monotonic() - began < 30


def test_a_receiver_that_does_not_answer_is_given_up(server: Receiver) -> None:
    assert reason(send(server.url("/slow"), limit_s=0.3)) == "no answer within 0.3 s"


def test_one_that_answers_a_byte_at_a_time_can_be_broken_off(server: Receiver) -> None:
    """The time is limited as a whole: whoever waits calls `abort` when it is up."""
    request = Request(server.url("/drip"), SECRET, a_letter(), limit_s=30, allow_private=True)
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(request.carry_out()))
    before = len(server.received)
    thread.start()
    server.wait_for(before + 1)
    request.abort()
    thread.join(10)
    assert not thread.is_alive()
    assert reason(outcomes[0])


def test_nobody_there(server: Receiver) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        assert "no connection" in reason(send(f"http://127.0.0.1:{port}/"))
    said = reason(send("http://no-such-name.invalid/"))
    assert "no-such-name.invalid was not found" in said
    assert "cannot be sent" in reason(send(f"http://{'a' * 70}.example/"))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"])
def test_private_addresses_are_refused_when_it_connects(server: Receiver, host: str) -> None:
    before = len(server.received)
    said = reason(send(f"http://{host}:{server.port}/ok", allow_private=False))
    assert "not on the internet" in said
    assert "--allow-private" in said
    assert server.received[before:] == []


def test_a_name_that_leads_home_is_refused(
    server: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A public name at first, ours a moment later: it is looked up once, and that is checked."""
    answers = ["93.184.216.34", "127.0.0.1"]
    looked_up: list[str] = []
    real = socket.getaddrinfo

    def lies(host: str, port: int, **options: int) -> object:
        looked_up.append(host)
        return real(answers[-1], port, **options)

    monkeypatch.setattr(socket, "getaddrinfo", lies)
    said = reason(send(f"http://innocent.example:{server.port}/ok", allow_private=False))
    assert "innocent.example leads to 127.0.0.1" in said
    assert looked_up == ["innocent.example"]
    before = len(server.received)
    assert send(f"http://innocent.example:{server.port}/ok") == Delivered()
    assert server.received[before].headers["host"] == f"innocent.example:{server.port}"
    assert looked_up == ["innocent.example"] * 2, "once for each delivery"


def test_what_is_too_large_is_left_out(server: Receiver) -> None:
    task = {"id": "bg_1", "result": "x" * 1_000_000}
    before = len(server.received)
    letter = a_letter(task=task)
    request = Request(server.url(), SECRET, letter, limit_s=10, allow_private=True)
    assert request.carry_out() == Delivered()
    data = server.received[before].verified(SECRET)["data"]
    assert data["task"] == {"id": "bg_1", "result": None, "left_out": ["result"]}
    letter = a_letter("y" * 1_000_000, data={"lines": ["z" * 1_000_000]})
    request = Request(server.url(), SECRET, letter, limit_s=10, allow_private=True)
    assert request.carry_out() == Delivered()
    assert len(server.received[before + 1].body) < 10_000
    assert server.received[before + 1].verified(SECRET)["data"]["signal"]["left_out"] == ["data"]


def test_names_that_are_no_utf8_can_be_told(server: Receiver) -> None:
    before = len(server.received)
    letter = a_letter("\udcff.txt (bg_1) finished")
    request = Request(server.url(), SECRET, letter, limit_s=10, allow_private=True)
    assert request.carry_out() == Delivered()
    assert server.received[before].verified(SECRET)


@pytest.mark.slow
def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.fail("openssl is missing: install that package")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "1", "-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def accept_once(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with pytest.raises((ssl.SSLError, OSError)), connection:
            context.wrap_socket(connection, server_side=True)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=accept_once, args=(listening,))
        thread.start()
        said = reason(send(f"https://localhost:{listening.getsockname()[1]}/"))
        thread.join()
    assert "no safe connection" in said
