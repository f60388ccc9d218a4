"""E1: tools by name, as they are declared, found, shown and called."""

import functools
import subprocess
import sys
from types import ModuleType
from typing import Any, cast

import pytest

from backburner import (
    ConnectionRequired,
    Context,
    InternalError,
    InvalidArguments,
    Outcome,
    Registry,
    Tool,
    ToolError,
    UsageError,
    tool,
)
from backburner.work.tools.nowhere import Nowhere
from backburner.work.tools.tool import MARK, tool_at


@tool(background=True, idempotent=True, budget=30)
async def importable(n: int) -> int:
    """Add one."""
    return n + 1


@tool
def plain(text: str) -> str:
    return text


class Listener(Nowhere):
    """A sink that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def status(self, text: str) -> None:
        self.said.append(text)


def test_e1_a_decorated_function_stays_what_it_is() -> None:
    registry = Registry()

    @registry.tool
    def double(n: int) -> int:
        """Twice as much."""
        return 2 * n

    @registry.tool("thrice", display_name="Three times", budget=None, readonly=True)
    def triple(n: int) -> int:
        return 3 * n

    assert (double(4), triple(4)) == (8, 12)
    assert registry.names() == ["double", "thrice"]
    assert getattr(double, MARK) is registry.get("double")
    assert [*registry] == [registry.get("double"), registry.get("thrice")]
    assert "double" in registry
    assert len(registry) == 2


def test_d1_the_budget_is_600_s_unless_told() -> None:
    registry = Registry([plain, importable])
    assert registry.get("plain").budget == 600
    assert registry.get("importable").budget == 30


def test_e1_a_tool_has_names_texts_and_hints() -> None:
    registry = Registry()

    @registry.tool(
        name="remove_all",
        description="Take everything away",
        destructive=True,
        background=True,
        policy="admin",
        narration="Removing {what}",
    )
    def remove(what: str) -> None: ...

    (document,) = registry.schemas()
    assert document == {
        "name": "remove_all",
        "display_name": "Remove all",
        "description": "Take everything away",
        "parameters": {
            "type": "object",
            "additionalProperties": False,
            "required": ["what"],
            "properties": {"what": {"type": "string"}},
        },
        "budget": 600.0,
        "policy": "admin",
        "hints": {
            "readonly": False,
            "idempotent": False,
            "destructive": True,
            "supports_background": True,
        },
    }


def test_e1_narration_hides_secrets_and_never_fails() -> None:
    registry = Registry()

    @registry.tool(narration="Signing in {user} with {token}", display_name="Sign in")
    def sign_in(user: str, token: str) -> None: ...

    @registry.tool(narration=lambda arguments: f"Hello {arguments['user']}")
    def greet(user: str) -> None: ...

    said = registry.get("sign_in").narrate({"user": "x" * 500, "token": "s3cret"})
    assert said == f"Signing in {'x' * 200} with [redacted]"
    assert registry.get("sign_in").narrate({}) == "Sign in"
    assert registry.get("greet").narrate({"user": "Ada"}) == "Hello Ada"
    assert Registry([plain]).get("plain").narrate({"text": "x"}) is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "no good"}, "cannot be the name"),
        ({"name": "x" * 65}, "cannot be the name"),
        ({"budget": 0}, "budget"),
        ({"budget": -1.0}, "budget"),
        ({"budget": float("inf")}, "budget"),
        ({"readonly": True, "destructive": True}, "changes nothing"),
    ],
)
def test_e1_options_that_make_no_sense_are_refused(options: Any, said: str) -> None:
    registry = Registry()
    with pytest.raises(UsageError, match=said):
        registry.tool(**cast("Any", {"name": "some", **options}))(lambda: None)
    assert registry.names() == []


def test_e1_a_lambda_needs_a_name() -> None:
    with pytest.raises(UsageError, match="name"):
        Registry([lambda: None])


def test_e1_what_yields_is_refused() -> None:
    def count() -> Any:
        yield 1

    with pytest.raises(UsageError, match="yields"):
        Registry([count])


def test_e1_a_name_is_taken_once_unless_it_is_replaced() -> None:
    registry = Registry([plain])
    registry.add(plain)  # the very same
    with pytest.raises(UsageError, match="already"):
        registry.add(importable, name="plain")
    replaced = registry.add(importable, name="plain", replace=True)
    assert registry.get("plain") is replaced
    tool(background=True, idempotent=True, budget=30)(importable)  # as it was


def test_e1_an_unknown_tool_is_refused_with_those_that_are_known() -> None:
    registry = Registry([plain])
    with pytest.raises(UsageError, match=r"no tool 'plian' \(did you mean plain\?"):
        registry.get("plian")
    with pytest.raises(UsageError, match="none is registered"):
        Registry().get("plain")
    with pytest.raises(UsageError) as caught:
        registry.get("x" * 10_000)
    assert len(str(caught.value)) < 200
    assert registry.find("plian") is None


def test_e1_a_module_is_taken_in_with_its_tools() -> None:
    module = ModuleType("toolbox")
    vars(module).update(plain=plain, again=plain, importable=importable, other=len, number=3)
    registry = Registry()
    assert [each.name for each in registry.add_module(module)] == ["plain", "importable"]


def test_e2_a_tool_can_be_declared_that_nothing_here_carries_out() -> None:
    registry = Registry()
    declared = registry.declare("elsewhere", {"type": "object"}, background=True)
    assert (declared.function, declared.background, declared.reference) == (None, True, None)
    assert declared.validate({"a": 1}) == {"a": 1}
    with pytest.raises(InvalidArguments, match="object"):
        declared.validate([])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="nothing that carries it out"):
        declared.call({})


def test_e1_a_copy_changes_by_itself() -> None:
    registry = Registry([plain])
    copy = registry.copy()
    copy.add(importable)
    copy.remove("plain")
    assert (registry.names(), copy.names()) == (["plain"], ["importable"])


def test_e11_a_tool_of_a_module_can_be_found_by_another_process() -> None:
    reference = Registry([importable]).get("importable").reference
    assert reference is not None
    assert reference == f"{__name__}:importable"
    assert tool_at(reference) is Registry([importable]).get("importable")


def test_e11_closures_and_methods_have_no_reference() -> None:
    def closure(n: int) -> int:
        return n

    class Counter:
        def count(self, n: int) -> int:
            return n

    registry = Registry([closure, Counter().count])
    registry.tool(name="nameless")(lambda: None)
    assert [each.reference for each in registry] == [None, None, None]


def test_e11_a_tool_that_is_not_the_functions_own_has_no_reference() -> None:
    """Another process would find the other one, with other options."""

    @tool
    def twice(n: int) -> int:
        return n

    twice.__qualname__ = "made_here"
    vars(sys.modules[__name__])["made_here"] = twice
    try:
        first: Tool = getattr(twice, MARK)
        assert first.reference == f"{__name__}:made_here"
        second = Registry().add(twice, name="other", budget=5)
        assert (first.reference, second.reference) == (None, f"{__name__}:made_here")
    finally:
        del vars(sys.modules[__name__])["made_here"]


def test_e11_what_is_in_main_has_no_reference() -> None:
    program = (
        "from backburner import Registry, tool\n"
        "@tool\n"
        "def here(n: int) -> int: return n\n"
        "print(Registry([here]).get('here').reference)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.strip() == "None"


@pytest.mark.parametrize(
    "reference", ["no_such_module:f", f"{__name__}:nothing", f"{__name__}:Listener", "sys:", ":"]
)
def test_e11_a_reference_to_no_tool_is_refused(reference: str) -> None:
    with pytest.raises(UsageError):
        tool_at(reference)


async def test_e1_what_stands_for_a_tool_keeps_its_options() -> None:
    def twice(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return 2 * function(*args, **kwargs)

        return wrapper

    @twice
    @tool(name="count", budget=5)
    def counted(n: int) -> int:
        return n

    class Adder:
        def __init__(self, n: int) -> None:
            self.n = n

        @tool(readonly=True)
        def plus(self, n: int) -> int:
            return self.n + n

    registry = Registry([counted, Adder(3).plus])
    assert registry.get("count").budget == 5
    assert registry.get("plus").readonly
    assert [*registry.get("plus").parameters["properties"]] == ["n"]
    assert (await registry.execute("count", {"n": 2})).result == 4
    assert (await registry.execute("plus", {"n": 2})).result == 5


async def test_e1_a_registry_executes_with_and_without_context() -> None:
    registry = Registry()

    @registry.tool
    async def work(context: Context, n: int) -> int:
        context.status(f"working on {n}")
        return n

    @registry.tool
    def by_name(context, n: int) -> int:  # type: ignore[no-untyped-def]  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
        context.status(f"working on {n}")  # pyright: ignore[reportUnknownMemberType]
        return n

    listener = Listener()
    for name in ("work", "by_name"):
        assert await registry.execute(name, {"n": 1}) == Outcome(result=1)
        assert await registry.execute(name, {"n": 2}, Context(listener)) == Outcome(result=2)
    assert listener.said == ["working on 2", "working on 2"]


async def test_e1_nobody_can_be_asked_without_a_session() -> None:
    registry = Registry()

    @registry.tool
    async def curious(context: Context) -> str:
        return await context.ask("who?")

    with pytest.raises(ToolError, match="nobody to ask"):
        await registry.execute("curious", {})


async def test_e1_a_registry_raises_what_may_be_told() -> None:
    registry = Registry()

    @registry.tool
    def broken(kind: str) -> None:
        if kind == "tool":
            raise ToolError("that does not work")
        if kind == "internal":
            raise InternalError("the database is at 10.0.0.3")
        if kind == "connection":
            raise ConnectionRequired("github")
        raise KeyError(kind)

    with pytest.raises(ToolError, match="ToolError: that does not work"):
        await registry.execute("broken", {"kind": "tool"})
    with pytest.raises(ToolError, match="KeyError: 'other'"):
        await registry.execute("broken", {"kind": "other"})
    with pytest.raises(InternalError) as caught:
        await registry.execute("broken", {"kind": "internal"})
    assert "10.0.0.3" not in str(caught.value)
    with pytest.raises(ConnectionRequired) as needed:
        await registry.execute("broken", {"kind": "connection"})
    assert needed.value.provider == "github"
    with pytest.raises(InvalidArguments):
        await registry.execute("broken", {})


def test_naming_a_tool_loads_no_pydantic() -> None:
    program = (
        "import sys, backburner; backburner.tool, backburner.Registry();"
        "print('pydantic' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.strip() == "False"
