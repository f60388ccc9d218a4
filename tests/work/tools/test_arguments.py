"""E1: the schema comes from the signature, and a model can act on what is said of its arguments."""

import enum
import functools
import json
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field

from backburner import Context, InvalidArguments, UsageError
from backburner.work.tools.tool import Tool, tool_of


class Colour(enum.Enum):
    RED = "red"


class Account(BaseModel):
    """Who."""

    name: str
    password: str = ""


def a_tool(function: Callable[..., Any]) -> Tool:
    return tool_of(function)


def complaint(tool: Tool, arguments: Any) -> str:
    with pytest.raises(InvalidArguments) as caught:
        tool.validate(arguments)
    assert caught.value.__cause__ is None
    return str(caught.value)


async def crawl(  # noqa: PLR0917 - as models see them
    context: Context,
    url: Annotated[str, Field(description="Where to begin")],
    depth: int = 2,
    colours: list[Colour] = [],  # noqa: B006
    mode: Literal["fast", "slow"] = "fast",
    until: date | None = None,
    anything: Any = None,
) -> None:
    """Crawl a site,
    page by page.

    Not for models.
    """


def test_e1_the_schema_is_that_of_the_signature() -> None:
    tool = a_tool(crawl)
    schema = tool.parameters
    assert tool.description == "Crawl a site, page by page."
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["url"]
    assert [*schema["properties"]] == ["url", "depth", "colours", "mode", "until", "anything"]
    assert schema["properties"]["url"] == {"type": "string", "description": "Where to begin"}
    assert schema["properties"]["depth"] == {"type": "integer", "default": 2}
    assert schema["properties"]["mode"]["enum"] == ["fast", "slow"]
    assert schema["properties"]["anything"] == {"default": None}
    assert "title" not in json.dumps(schema)


def test_e1_arguments_become_what_the_function_takes() -> None:
    kwargs = a_tool(crawl).validate(
        {"url": "u", "depth": "3", "colours": ["red"], "until": "2026-01-02", "anything": {"a": 1}}
    )
    assert kwargs == {
        "url": "u",
        "depth": 3,
        "colours": [Colour.RED],
        "until": date(2026, 1, 2),
        "anything": {"a": 1},
    }


def test_e1_what_is_left_out_is_left_to_the_function() -> None:
    assert a_tool(crawl).validate({"url": "u"}) == {"url": "u"}


def test_e1_the_context_is_no_argument_and_cannot_be_given() -> None:
    assert "no such argument" in complaint(a_tool(crawl), {"url": "u", "context": "mine"})


def test_e1_an_argument_may_be_called_context_where_its_type_says_so() -> None:
    def explain(context: str) -> str:
        return context

    tool = a_tool(explain)
    assert not tool.wants_context
    assert tool.validate({"context": "x"}) == {"context": "x"}


@pytest.mark.parametrize("name", ["self", "json", "model_x", "_hidden", "schema", "copy", "class_"])
def test_e1_any_name_may_be_that_of_an_argument(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def f({name}: int): return {name}", scope)
    tool = a_tool(scope["f"])
    assert tool.validate({name: 3}) == {name: 3}


def test_e1_an_argument_without_a_type_takes_any_json() -> None:
    scope: dict[str, Any] = {}
    exec("def f(a, b=1): return a", scope)
    tool = a_tool(scope["f"])
    assert tool.parameters["properties"] == {"a": {}, "b": {"default": 1}}
    assert tool.validate({"a": {"x": [None]}}) == {"a": {"x": [None]}}


def test_e1_a_field_as_default_is_the_one_it_holds() -> None:
    def take(n: int = Field(3, ge=1, description="How many")) -> int:
        return n

    tool = a_tool(take)
    assert tool.parameters["properties"]["n"] == {
        "type": "integer",
        "minimum": 1,
        "default": 3,
        "description": "How many",
    }
    assert tool.validate({}) == {"n": 3}


def test_e1_a_partial_and_an_object_that_can_be_called_are_tools_too() -> None:
    def power(base: int, exponent: int) -> int:
        return base**exponent

    class Greeter:
        """Greets."""

        async def __call__(self, name: str) -> str:
            return f"hello {name}"

    square = tool_of(functools.partial(power, exponent=2), name="square")
    assert square.validate({"base": 3}) == {"base": 3}
    greeter = a_tool(Greeter())
    assert (greeter.name, greeter.description, greeter.is_async) == ("Greeter", "Greets.", True)
    assert greeter.validate({"name": "Ada"}) == {"name": "Ada"}


def star(*urls: str) -> None: ...
def positional(url: str, /) -> None: ...
def unresolved(url: "NoSuchType") -> None: ...  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
def strange(lock: Callable[[int], str]) -> None: ...


REFUSED: list[Callable[..., Any]] = [star, positional, unresolved, strange]  # pyright: ignore[reportUnknownVariableType]


@pytest.mark.parametrize("function", REFUSED)
def test_e1_a_signature_without_a_schema_is_refused_at_once(function: Callable[..., Any]) -> None:
    with pytest.raises(UsageError, match=function.__name__) as caught:
        a_tool(function)
    assert caught.value.remedy


def test_e1_a_function_that_takes_whatever_is_named_says_so() -> None:
    def take(n: int, **rest: Any) -> None: ...

    tool = a_tool(take)
    assert tool.parameters.get("additionalProperties") is not False
    assert tool.validate({"n": 1, "more": [2]}) == {"n": 1, "more": [2]}


def test_e1_what_is_wrong_is_said_line_by_line() -> None:
    said = complaint(
        a_tool(crawl), {"depth": "deep", "mode": "medium", "colours": ["red", "pink"], "dpeth": 3}
    )
    assert said.splitlines() == [
        "crawl: wrong arguments",
        "- url: it is missing",
        '- depth: input should be a valid integer, unable to parse string as an integer; given: "deep"',  # noqa: E501
        "- colours[1]: input should be 'red'; given: \"pink\"",
        "- mode: input should be 'fast' or 'slow'; given: \"medium\"",
        "- dpeth: no such argument; it takes url, depth, colours, mode, until, anything",
    ]


@pytest.mark.parametrize("given_arguments", [None, [], "text", 3])
def test_e1_arguments_that_are_no_object_are_refused(given_arguments: Any) -> None:
    assert "have to be an object" in complaint(a_tool(crawl), given_arguments)


def test_e1_a_complaint_is_short_whatever_was_given() -> None:
    many = {f"x{number}" + "y" * 500: 1 for number in range(1000)}
    assert len(complaint(a_tool(crawl), {"url": ["z" * 100_000], **many})) < 3_000
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    assert len(complaint(a_tool(crawl), {"url": deep})) < 3_000


def with_secrets(account: Account, token: int, headers: dict[str, int]) -> None: ...


def test_d9_a_complaint_shows_no_secret() -> None:
    said = complaint(
        a_tool(with_secrets),
        {
            "account": {"name": 1, "password": ["s3cret"]},
            "token": "s3cret-token",
            "headers": {"Authorization": "Bearer s3cret"},
            "api_key": "s3cret-key",
        },
    )
    assert "s3cret" not in said
    assert "account.password" in said
    assert "token: " in said


def test_d9_a_complaint_of_a_validator_shows_no_secret() -> None:
    def refuse(value: str) -> str:
        raise ValueError(f"not {value}")

    def crash(value: str) -> str:
        raise RuntimeError(f"no idea of {value}")

    def take(token: Annotated[str, AfterValidator(refuse)] = "") -> None: ...
    def take_more(token: Annotated[str, AfterValidator(crash)] = "") -> None: ...

    assert "not [redacted]" in complaint(a_tool(take), {"token": "s3cret"})
    assert "RuntimeError: no idea of [redacted]" in complaint(
        a_tool(take_more), {"token": "s3cret"}
    )


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)
CRAWL = a_tool(crawl)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(["url", "depth", "mode", "x"]) | st.text(), documents))
def test_e1_whatever_a_model_gives_is_taken_or_explained(arguments: dict[str, Any]) -> None:
    said = kwargs = None
    try:
        kwargs = CRAWL.validate(arguments)
    except InvalidArguments as error:
        said = str(error)
    if said is None:
        assert set(kwargs or {}) == set(arguments)
    else:
        assert said.startswith("crawl: wrong arguments\n- ")
        said.encode()
