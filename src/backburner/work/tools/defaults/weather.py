"""The weather, from Open-Meteo or whatever speaks as it does: no key, and one address to ask.

`BACKBURNER_WEATHER_URL` names another server, which may be a private one: that is the operator's
choice and no model's.
"""

import json
import os
from typing import Annotated, Any, cast
from urllib.parse import urlencode, urlsplit

from pydantic import Field

from backburner.model.errors import ToolError
from backburner.model.values import value
from backburner.work.fetch import FetchFailed, fetch, host_and_port
from backburner.work.tools.tool import tool

_PLACES = "https://geocoding-api.open-meteo.com"
_FORECASTS = "https://api.open-meteo.com"
_LIMIT_S = 20.0
_ANSWER_MAX = 512 * 1024

_NOW = ("temperature_2m", "relative_humidity_2m", "precipitation", "weather_code", "wind_speed_10m")
_DAYS = ("temperature_2m_max", "temperature_2m_min", "precipitation_sum", "weather_code")

_CONDITIONS = {
    0: "clear sky",
    1: "mainly clear",
    2: "partly cloudy",
    3: "overcast",
    45: "fog",
    48: "rime fog",
    51: "light drizzle",
    53: "drizzle",
    55: "dense drizzle",
    56: "light freezing drizzle",
    57: "freezing drizzle",
    61: "light rain",
    63: "rain",
    65: "heavy rain",
    66: "light freezing rain",
    67: "freezing rain",
    71: "light snow",
    73: "snow",
    75: "heavy snow",
    77: "snow grains",
    80: "light showers",
    81: "showers",
    82: "violent showers",
    85: "snow showers",
    86: "heavy snow showers",
    95: "thunderstorm",
    96: "thunderstorm with hail",
    99: "thunderstorm with heavy hail",
}
"""WMO code 4677, as far as Open-Meteo uses it."""

Location = Annotated[
    str,
    Field(
        description="Name of a place, such as Berlin, or latitude,longitude",
        min_length=1,
        max_length=200,
    ),
]


@value
class Place:
    """A point on the earth, and what it is called."""

    name: str
    latitude: float
    longitude: float


@tool(display_name="Current weather", readonly=True, idempotent=True)
def get_weather(location: Location) -> dict[str, Any]:
    """Get the weather at a place now: temperature, humidity, rain, wind."""
    place = _place(location)
    answer = _forecast(place, {"current": ",".join(_NOW)})
    now = _object(answer, "current")
    return {
        "location": place.name,
        "time": now.get("time"),
        "timezone": answer.get("timezone"),
        "temperature_c": now.get("temperature_2m"),
        "humidity_percent": now.get("relative_humidity_2m"),
        "precipitation_mm": now.get("precipitation"),
        "wind_kmh": now.get("wind_speed_10m"),
        "condition": _condition(now.get("weather_code")),
    }


@tool(display_name="Weather forecast", readonly=True, idempotent=True)
def get_forecast(
    location: Location,
    days: Annotated[int, Field(description="How many days, today included", ge=1, le=16)] = 3,
) -> dict[str, Any]:
    """Get the weather forecast for a place, day by day."""
    place = _place(location)
    answer = _forecast(place, {"daily": ",".join(_DAYS), "forecast_days": days})
    daily = _object(answer, "daily")
    columns = [_column(daily, name) for name in ("time", *_DAYS)]
    return {
        "location": place.name,
        "timezone": answer.get("timezone"),
        "days": [
            {
                "date": date,
                "high_c": high,
                "low_c": low,
                "precipitation_mm": rain,
                "condition": _condition(code),
            }
            for date, high, low, rain, code in zip(*columns, strict=False)
        ],
    }


def _place(location: str) -> Place:
    given = _coordinates(location)
    if given is not None:
        return given
    query = {"name": location.strip(), "count": 1, "language": "en", "format": "json"}
    found = _ask(_PLACES, "/v1/search", query).get("results")
    if not isinstance(found, list) or not found:
        raise ToolError(
            f"no place called {location!r} was found",
            remedy="give the name of a town, or latitude,longitude",
        )
    first = cast("list[Any]", found)[0]
    try:
        country = first.get("country")
        name = f"{first['name']}, {country}" if country else str(first["name"])
        return Place(name, float(first["latitude"]), float(first["longitude"]))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _not_understood() from None


def _coordinates(location: str) -> Place | None:
    latitude, comma, longitude = location.partition(",")
    try:
        place = Place(location.strip(), float(latitude), float(longitude))
    except ValueError:
        return None
    if not comma or not (abs(place.latitude) <= 90 and abs(place.longitude) <= 180):  # noqa: PLR2004 - degrees
        raise ToolError(f"{location!r} is no point on the earth", remedy="-90..90,-180..180")
    return place


def _forecast(place: Place, wanted: dict[str, Any]) -> dict[str, Any]:
    point = {"latitude": place.latitude, "longitude": place.longitude, "timezone": "auto"}
    return _ask(_FORECASTS, "/v1/forecast", point | wanted)


def _ask(server: str, path: str, query: dict[str, Any]) -> dict[str, Any]:
    chosen = os.environ.get("BACKBURNER_WEATHER_URL")
    base = (chosen or server).rstrip("/")
    trusted = [host_and_port(urlsplit(base))] if chosen else []
    try:
        page = fetch(
            f"{base}{path}?{urlencode(query)}",
            limit_s=_LIMIT_S,
            most_bytes=_ANSWER_MAX,
            accept="application/json",
            trusted=trusted,
        )
    except FetchFailed as error:
        raise ToolError(f"the weather service cannot be reached: {error}") from None
    if page.status != 200:  # noqa: PLR2004 - HTTP's own number
        raise ToolError(f"the weather service answered {page.status_text}")
    try:
        answer = json.loads(page.body)
    except (ValueError, RecursionError):
        raise _not_understood() from None
    if not isinstance(answer, dict):
        raise _not_understood()
    return cast("dict[str, Any]", answer)


def _object(answer: dict[str, Any], name: str) -> dict[str, Any]:
    found = answer.get(name)
    if not isinstance(found, dict):
        raise _not_understood()
    return cast("dict[str, Any]", found)


def _column(daily: dict[str, Any], name: str) -> list[Any]:
    found = daily.get(name)
    if not isinstance(found, list):
        raise _not_understood()
    return cast("list[Any]", found)


def _condition(code: Any) -> str | None:
    return _CONDITIONS.get(code) if isinstance(code, int) else None


def _not_understood() -> ToolError:
    return ToolError("the answer of the weather service was not understood")
