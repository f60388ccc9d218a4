"""E13: pages as text, and the weather from a server that speaks as Open-Meteo does."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from backburner import InvalidArguments, ToolError
from backburner.work.tools.defaults import default_registry
from backburner.work.tools.defaults.html_text import text_of_html
from backburner.work.tools.defaults.web import read_page
from tests.work.pages import Answer, Pages, pages

REGISTRY = default_registry()


@pytest.fixture
def server() -> Iterator[Pages]:
    with pages() as running:
        yield running


def read(server: Pages, path: str, start: int = 0, max_chars: int = 1000) -> dict[str, Any]:
    return read_page(server.url(path), start, max_chars, trusted=[server.host])


def test_e13_a_page_is_read_as_text(server: Pages) -> None:
    page = "<title>A &amp; B</title><h1>Caf\u00e9</h1><p>one <b>two</b><script>no()</script>"
    server.answers["/"] = Answer(page.encode())
    assert read(server, "/") == {
        "url": server.url("/"),
        "status": 200,
        "content_type": "text/html",
        "title": "A & B",
        "text": "Café\n\none two",
        "total_chars": 13,
        "complete": True,
    }
    part = read(server, "/", start=6, max_chars=3)
    assert (part["text"], part["complete"]) == ("one", False)


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/plain; charset=latin-1", b"caf\xe9 <b>", "café <b>"),
        ("text/plain; charset=zlib_codec", b"caf\xe9", "caf\ufffd"),
        ("text/plain; charset=utf-16", "né".encode("utf-16"), "né"),
        ("application/json", b'{"a": 1}', '{"a": 1}'),
        ("application/problem+json", b"{}", "{}"),
        (None, b"plain", "plain"),
    ],
)
def test_e13_other_texts_are_read_as_they_are(
    server: Pages, content_type: str | None, body: bytes, text: str
) -> None:
    server.answers["/x"] = Answer(body, content_type)
    assert read(server, "/x")["text"] == text


def test_e13_what_is_no_text_is_said(server: Pages) -> None:
    server.answers["/png"] = Answer(b"\x89PNG", "image/png")
    server.answers["/bin"] = Answer(b"a\0b", "text/plain")
    server.answers["/no"] = Answer(b"<p>it is gone", status=410)
    for path, said in (("/png", "image/png"), ("/bin", "binary"), ("/none", "404 Not Found")):
        with pytest.raises(ToolError, match=said):
            read(server, path)
    with pytest.raises(ToolError, match="410 Gone: it is gone"):
        read(server, "/no")


async def test_e13_the_tool_itself_trusts_no_private_address(server: Pages) -> None:
    server.answers["/"] = Answer(b"internal")
    for url in (server.url("/"), f"http://localhost:{server.port}/"):
        with pytest.raises(ToolError, match="not on the web"):
            await REGISTRY.execute("web_fetch", {"url": url})
    with pytest.raises(InvalidArguments):
        await REGISTRY.execute("web_fetch", {"url": server.url("/"), "trusted": [server.host]})
    assert server.asked == []


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("", ""),
        ("a < b & c > d", "a < b & c > d"),
        ("<p>a<p>b<br>c", "a\nb\nc"),
        ("<ul><li>a</li><li>b</li></ul>", "a\n\nb"),
        ("a<!-- <p>hidden</p> -->b", "ab"),
        ("a<!-- never closed <p>b", "a"),
        ("<style>p {}</style>a<SVG><text>b</text></SVG>c", "ac"),
        ("a<script>never closed", "anever closed"),
        ("<script>if (a < b) { '</p>' }</script>c", "c"),
        ("x &#99999999999999999; &#x41;", "x \ufffd A"),
        ("<p\nclass='x'>a   \n  b</p>", "a b"),
    ],
)
def test_e13_markup_is_taken_off(page: str, text: str) -> None:
    assert text_of_html(page)[1] == text


@pytest.mark.parametrize(
    "piece", ["<", "<a ", "<!--", "<![", "</", "<svg>", "&#9", "<a b='", "<p>"]
)
def test_e13_a_hostile_page_is_read_in_time(piece: str) -> None:
    began = time.process_time()
    text_of_html(piece * (400_000 // len(piece)))
    assert time.process_time() - began < 5


BERLIN = {
    "results": [{"name": "Berlin", "country": "Germany", "latitude": 52.5, "longitude": 13.4}]
}
NOW = {
    "timezone": "Europe/Berlin",
    "current": {
        "time": "2026-01-02T12:00",
        "temperature_2m": -1.5,
        "relative_humidity_2m": 80,
        "precipitation": 0.0,
        "weather_code": 71,
        "wind_speed_10m": 12.3,
    },
}
DAYS = {
    "timezone": "Europe/Berlin",
    "daily": {
        "time": ["2026-01-02", "2026-01-03"],
        "temperature_2m_max": [1.0, 2.0],
        "temperature_2m_min": [-3.0, None],
        "precipitation_sum": [0.0, 4.5],
        "weather_code": [3, 12345],
    },
}


@pytest.fixture
def weather(server: Pages, monkeypatch: pytest.MonkeyPatch) -> Pages:
    monkeypatch.setenv("BACKBURNER_WEATHER_URL", server.url("/meteo/"))
    server.answers["/meteo/v1/search"] = as_json(BERLIN)
    server.answers["/meteo/v1/forecast"] = as_json(NOW)
    return server


def as_json(document: Any) -> Answer:
    return Answer(json.dumps(document).encode(), "application/json")


async def ask(name: str, **arguments: Any) -> Any:
    return (await REGISTRY.execute(name, arguments)).result


async def test_e13_the_weather_at_a_place(weather: Pages) -> None:
    assert await ask("get_weather", location="Berlin & more") == {
        "location": "Berlin, Germany",
        "time": "2026-01-02T12:00",
        "timezone": "Europe/Berlin",
        "temperature_c": -1.5,
        "humidity_percent": 80,
        "precipitation_mm": 0.0,
        "wind_kmh": 12.3,
        "condition": "light snow",
    }
    search, forecast = weather.asked
    assert "name=Berlin+%26+more" in search
    assert "latitude=52.5&longitude=13.4" in forecast


async def test_e13_the_forecast_for_a_point(weather: Pages) -> None:
    weather.answers["/meteo/v1/forecast"] = as_json(DAYS)
    told = await ask("get_forecast", location="52.5, 13.4", days=2)
    assert [day["condition"] for day in told["days"]] == ["overcast", None]
    assert told["days"][1] == {
        "date": "2026-01-03",
        "high_c": 2.0,
        "low_c": None,
        "precipitation_mm": 4.5,
        "condition": None,
    }
    (asked,) = weather.asked
    assert "forecast_days=2" in asked


@pytest.mark.parametrize("answer", [[], "x", {}, {"current": []}, {"daily": {"time": 3}}])
async def test_e13_an_answer_that_is_not_understood_is_said(weather: Pages, answer: Any) -> None:
    weather.answers["/meteo/v1/forecast"] = as_json(answer)
    for name in ("get_weather", "get_forecast"):
        with pytest.raises(ToolError, match="not understood"):
            await ask(name, location="1,2")


async def test_e13_a_weather_service_that_does_not_serve_is_said(
    weather: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    weather.answers["/meteo/v1/search"] = as_json({"generationtime_ms": 1})
    with pytest.raises(ToolError, match="no place called"):
        await ask("get_weather", location="Nowhere")
    with pytest.raises(ToolError, match="no point on the earth"):
        await ask("get_weather", location="91,0")
    weather.answers["/meteo/v1/search"] = Answer(b"busy", status=503)
    with pytest.raises(ToolError, match="503 Service Unavailable"):
        await ask("get_weather", location="Berlin")
    weather.answers["/meteo/v1/search"] = Answer(b"<html>", "text/html")
    with pytest.raises(ToolError, match="not understood"):
        await ask("get_weather", location="Berlin")
    monkeypatch.setenv("BACKBURNER_WEATHER_URL", "http://no-such-name.invalid")
    with pytest.raises(ToolError, match="cannot be reached: the name no-such-name"):
        await ask("get_weather", location="Berlin")
