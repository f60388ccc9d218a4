"""E13: pages of the web are read, nothing nearer is, and no server holds the caller."""

import gzip
import threading
from collections.abc import Iterator
from typing import BinaryIO

import pytest

from backburner.work.fetch import FetchFailed, Page, fetch
from tests.work.pages import Answer, Pages, pages


@pytest.fixture
def server() -> Iterator[Pages]:
    with pages() as running:
        yield running


def get(server: Pages, path: str, *, limit_s: float = 20, most_bytes: int = 10_000) -> Page:
    return fetch(server.url(path), limit_s=limit_s, most_bytes=most_bytes, trusted=[server.host])


def refusal(address: str, *, trusted: list[str] | None = None, limit_s: float = 20) -> str:
    with pytest.raises(FetchFailed) as caught:
        fetch(address, limit_s=limit_s, most_bytes=10_000, trusted=trusted or [])
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_e13_a_page_is_read_with_what_is_known_of_it(server: Pages) -> None:
    server.answers["/a"] = Answer(b"hello", "text/plain; charset=ISO-8859-1")
    page = get(server, "/a?x=1&y=%20 z")
    assert (page.status, page.content_type, page.charset) == (200, "text/plain", "iso-8859-1")
    assert (page.body, page.complete) == (b"hello", True)
    assert server.asked == ["/a?x=1&y=%20%20z"]


@pytest.mark.parametrize(
    "address",
    [
        "http://localhost/", "http://127.0.0.1/", "http://127.1/", "http://2130706433/",
        "http://0x7f000001/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://0.0.0.0/",
        "http://10.0.0.1/", "http://192.168.0.1/", "http://169.254.169.254/latest/meta-data/",
        "http://[fd00::1]/", "https://127.0.0.1/",
    ],
)  # fmt: skip
def test_e13_private_addresses_are_refused(address: str) -> None:
    said = refusal(address, limit_s=5)
    assert "not on the web" in said or "not found" in said, said


@pytest.mark.parametrize(
    "address",
    [
        "", "nonsense", "ftp://example.com/", "file:///etc/passwd", "http://", "http:///x",
        "http://example.com:99999/", "http://[::1", "javascript:alert(1)",
        "http://user:pw@example.com/", "http://" + "a" * 5000, "gopher://127.0.0.1:70/",
    ],
)  # fmt: skip
def test_e13_what_is_no_address_of_a_page_is_refused(address: str) -> None:
    said = refusal(address)
    assert "pw" not in said


@pytest.mark.parametrize("host", ["a\x00b", "a b", "a" * 70, "ü" * 70, "x.invalid"])
def test_e13_a_name_that_leads_nowhere_is_said(host: str) -> None:
    assert refusal(f"http://{host}/")


def test_e13_each_redirect_is_checked_as_the_first_address_is(server: Pages) -> None:
    with pages() as other:
        other.answers["/secret"] = Answer(b"internal")
        server.answers["/there"] = Answer(b"good")
        server.answers["/a"] = Answer(status=302, headers={"Location": "/there"})
        server.answers["/b"] = Answer(status=307, headers={"Location": other.url("/secret")})
        server.answers["/c"] = Answer(status=301, headers={"Location": "file:///etc/passwd"})
        assert get(server, "/a").body == b"good"
        assert "not on the web" in refusal(server.url("/b"), trusted=[server.host])
        assert "http://" in refusal(server.url("/c"), trusted=[server.host])
        assert other.asked == []


def test_e13_redirects_end(server: Pages) -> None:
    server.answers["/loop"] = Answer(status=302, headers={"Location": "/loop"})
    assert "redirected" in refusal(server.url("/loop"), trusted=[server.host])
    assert len(server.asked) == 6


def test_e13_a_long_page_is_cut_and_says_so(server: Pages) -> None:
    server.answers["/long"] = Answer(b"x" * 10_001)
    page = get(server, "/long")
    assert (len(page.body), page.complete) == (10_000, False)
    server.answers["/just"] = Answer(b"x" * 10_000)
    assert get(server, "/just").complete


def test_e13_a_body_that_breaks_off_is_not_complete(server: Pages) -> None:
    server.answers["/half"] = Answer(b"x" * 10, headers={"Content-Length": "100"})
    page = get(server, "/half")
    assert (page.body, page.complete) == (b"x" * 10, False)


def test_e13_a_bomb_is_unpacked_no_further_than_wanted(server: Pages) -> None:
    packed = gzip.compress(b"x" * 50_000_000)
    server.answers["/bomb"] = Answer(packed, headers={"Content-Encoding": "gzip"})
    page = get(server, "/bomb")
    assert (page.body, page.complete) == (b"x" * 10_000, False)
    server.answers["/bad"] = Answer(b"nonsense", headers={"Content-Encoding": "gzip"})
    assert "damaged" in refusal(server.url("/bad"), trusted=[server.host])
    server.answers["/odd"] = Answer(b"nonsense", headers={"Content-Encoding": "br"})
    assert "compressed" in refusal(server.url("/odd"), trusted=[server.host])


def drip_headers(file: BinaryIO, closing: threading.Event) -> None:
    file.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    while not closing.wait(0.05):
        file.write(b"x")


def drip_body(file: BinaryIO, closing: threading.Event) -> None:
    file.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while not closing.wait(0.05):
        file.write(b"x")


def never(file: BinaryIO, closing: threading.Event) -> None:
    closing.wait()


@pytest.mark.parametrize("answer", [drip_headers, drip_body, never])
def test_e13_time_is_limited_as_a_whole(server: Pages, answer: object) -> None:
    server.answers["/slow"] = answer  # type: ignore[assignment]
    said = refusal(server.url("/slow"), trusted=[server.host], limit_s=0.4)
    assert said == "no answer within 0.4 s"


def garbage(file: BinaryIO, closing: threading.Event) -> None:
    file.write(b"\x00\xff\x1b[31mnot HTTP at all\r\n\r\n")


def many_headers(file: BinaryIO, closing: threading.Event) -> None:
    file.write(b"HTTP/1.1 200 OK\r\n" + b"X-More: and more\r\n" * 10_000)


@pytest.mark.parametrize("answer", [garbage, many_headers])
def test_e13_what_is_no_http_is_said_in_our_words(server: Pages, answer: object) -> None:
    server.answers["/bad"] = answer  # type: ignore[assignment]
    assert "no HTTP" in refusal(server.url("/bad"), trusted=[server.host])
