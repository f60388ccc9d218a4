"""Checking what a model gives as arguments, in words that it can act on. All of it is hostile."""

import json
import math
import reprlib
from collections.abc import Mapping
from typing import Any, cast

from backburner.model.errors import InvalidArguments, UsageError
from backburner.tools.seen import Offer, Parameter
from backburner.work.python import check_arguments

_TEXT_MAX = 1024 * 1024
_SHOWN_MAX = 60

_repr = reprlib.Repr()
_repr.maxlevel = 3
_repr.maxstring = _repr.maxother = 2 * _SHOWN_MAX


def checked(offer: Offer, given: Any) -> dict[str, Any]:
    """The arguments, each as its parameter says; what was left out or null is not there.

    InvalidArguments lists everything that is wrong at once.
    """
    if isinstance(given, str):  # some clients hand on the JSON that the model wrote
        given = _parsed(given)
    if not isinstance(given, Mapping):
        raise InvalidArguments(f"{offer.name}: the arguments are no object", remedy=_known(offer))
    arguments = cast("Mapping[Any, Any]", given)
    wrong: list[str] = []
    values: dict[str, Any] = {}
    parameters = {each.name: each for each in offer.parameters}
    for name, value in arguments.items():
        parameter = parameters.get(name) if isinstance(name, str) else None
        if parameter is None:
            wrong.append(f"{shown(name)}: no such argument")
        elif value is not None:
            try:
                values[parameter.name] = _fitting(parameter, value)
            except ValueError as error:
                wrong.append(f"{parameter.name}: {error}")
    wrong += [
        f"{each.name}: it is missing"
        for each in offer.parameters
        if each.required and arguments.get(each.name) is None
    ]
    if wrong:
        raise InvalidArguments(f"{offer.name}: {'; '.join(wrong[:8])}", remedy=_known(offer))
    return values


def _parsed(text: str) -> Any:
    if len(text) > _TEXT_MAX:
        raise InvalidArguments("the arguments are longer than 1 MiB")
    try:
        return json.loads(text, parse_constant=_no_number) if text.strip() else {}
    except (ValueError, RecursionError):
        raise InvalidArguments("the arguments are no JSON", remedy="give an object") from None


def _fitting(parameter: Parameter, value: Any) -> Any:
    match parameter.type:
        case "string":
            fitting = _text(value)
        case "boolean":
            fitting = _truth(value)
        case "number" | "integer":
            fitting = _number(value, whole=parameter.type == "integer")
        case _:
            fitting = _object(value)
    if parameter.choices and fitting not in parameter.choices:
        raise ValueError(f"{shown(fitting)} is none of {', '.join(parameter.choices)}")
    return fitting


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"it has to be a text, and not {shown(value)}")  # noqa: TRY004
    if len(value) > _TEXT_MAX:
        raise ValueError("it is longer than 1 MiB")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("it is no valid text") from None
    return value


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ValueError(f"it has to be true or false, and not {shown(value)}")


def _number(value: Any, *, whole: bool) -> float | int:
    if isinstance(value, str):  # models write "60" now and then, and mean it
        try:
            value = float(value)
        except ValueError:
            value = None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError("it has to be a number")  # noqa: TRY004
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    if not finite or (whole and value != int(value)):
        raise ValueError(f"it has to be a {'whole ' if whole else ''}number")
    return int(value) if whole else value


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, str):  # as a strict schema has it
        try:
            value = json.loads(value, parse_constant=_no_number) if value.strip() else {}
        except (ValueError, RecursionError):
            raise ValueError("it has to be a JSON object") from None
    if not isinstance(value, dict):
        raise ValueError(f"it has to be an object, and not {shown(value)}")  # noqa: TRY004
    given = cast("dict[str, Any]", value)
    try:
        check_arguments(given)
    except UsageError as error:
        raise ValueError(str(error)) from None
    return given


def shown(value: Any) -> str:
    """What was given, in a few characters, however large or deep it is."""
    try:
        text = _repr.repr(value)
    except Exception:  # noqa: BLE001 - a number of many thousand digits, and what a type brings along
        text = type(value).__name__
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 1] + "…"


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _known(offer: Offer) -> str:
    if not offer.parameters:
        return "it takes none"
    return "it takes " + ", ".join(
        each.name if each.required else f"{each.name}?" for each in offer.parameters
    )
