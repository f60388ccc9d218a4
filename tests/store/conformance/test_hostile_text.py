"""Every text that a caller, a job or a stranger can come up with is kept and harms nothing.

What an engine cannot hold as it is (NUL in Postgres, half a surrogate pair in UTF-8) may be
replaced in a text for people; it never makes a change fail, because a task whose error message
cannot be written would never end. A specification and a result come back exactly.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backburner.model.ending import Ending
from backburner.model.events import EventKind
from backburner.model.signals import end_key
from backburner.model.states import ErrorKind, State
from backburner.model.task import Progress
from backburner.store.protocol import Facts, Scope, Store
from tests.store.conformance.making import ADA, PLACE, PLENTY, ended, get, new_task, queued

pytestmark = pytest.mark.slow  # short ones, and many: together they take long

WHOLE = {
    "quotes": 'it\'s "quoted" `and` \\back',
    "SQL": "'; DROP TABLE task; --",
    "parameters": "?1 :id @id $id %s {task} {changed}",
    "wildcards": "100%_*?[a-z]",
    "JSON": '{"a": [1, "\\u0000"]}',
    "emoji": "👩‍🚀 tests 🧪🇩🇪",
    "other scripts": "Ünïcödé 日本語 עברית e\u0301",
    "line ends": "one\r\ntwo\u2028three\x85four\n",
    "controls": "\x1b[31mred\x1b[0m\x07\x7f\x01",
    "empty": "",
    "blanks": "  \t ",
    "a megabyte": "0123456789abcdef" * 65536,
    "a non-character": "\ufffe\uffff\U0010ffff",
}
BROKEN = {
    "NUL": "before\x00after",
    "surrogates": "before\udcff\ud800after",  # bytes of a file name that are no UTF-8
    "both": "before\udc80\x00\udcfeafter",
}


@pytest.mark.parametrize("name", WHOLE)
async def test_a_text_comes_back_as_it_was(store: Store, name: str) -> None:
    text = WHOLE[name]
    task = await store.create(new_task("bg_1", title=text, spec={"x": text}), limit=PLENTY)
    assert (task.title, task.spec) == (text, {"x": text})
    await store.claim("bg_1", 1, PLACE)
    await store.note(
        "bg_1", 1, EventKind.DETAIL, Facts(detail=text, progress=Progress(1, label=text))
    )
    noted = await get(store, "bg_1")
    assert (noted.detail, noted.progress) == (text, Progress(1, label=text))
    assert (await store.events("bg_1"))[-1].data["detail"] == text
    await store.finish("bg_1", 1, Ending.failed(ErrorKind.ERROR, text, result={text: [text]}))
    done = await get(store, "bg_1")
    assert done.error is not None
    assert (done.error.message, done.result) == (text, {text: [text]})
    (signal,) = await store.signals(ADA)
    assert text in signal.text
    assert signal.data["error"]["message"] == text
    assert await store.drop_signal(signal.key, text)
    assert (await store.signals(ADA))[0].reason == text


@pytest.mark.parametrize("name", BROKEN)
async def test_promise_1_a_text_that_no_database_holds_stops_no_change(
    store: Store, name: str
) -> None:
    text = BROKEN[name]
    spec = {"command": ["cat", text], text: text}
    task = await store.create(new_task("bg_1", title=text, spec=spec), limit=PLENTY)
    assert task.spec == spec, "or another file would be read"
    said = text.encode(errors="backslashreplace").decode()
    assert task.title == said, "which UTF-8 can say, and both databases alike"
    assert await store.create(new_task("bg_1", title=text, spec=spec), limit=PLENTY) == task  # E12
    assert await store.claim("bg_1", 1, PLACE) is not None
    assert await store.note("bg_1", 1, EventKind.DETAIL, Facts(detail=text)) is True
    assert await store.requeue("bg_1", 1, text) is not None
    assert await store.claim("bg_1", 2, PLACE) is not None
    ending = Ending.failed(ErrorKind.ERROR, text, result={"x": text})
    assert await store.finish("bg_1", 2, ending) is not None
    done = await get(store, "bg_1")
    assert done.error is not None
    assert done.error.message == said
    assert done.result == {"x": text}
    assert await store.delivery_failed(end_key("bg_1"), text, 0) is True
    assert await store.drop_signal(end_key("bg_1"), text) is True
    (signal,) = await store.signals(ADA)
    assert signal.reason == said
    assert said in signal.text


@pytest.mark.parametrize("name", WHOLE)
async def test_promise_2_hostile_names_keep_sessions_apart(store: Store, name: str) -> None:
    text = WHOLE[name][:900]  # check_name lets nobody use a longer one
    strange = Scope(f"o{text}", f"s{text}")
    mine = await ended(store, "bg_1", scope=strange)
    await ended(store, "bg_2", scope=Scope(f"{text}o", f"{text}s1"))
    await ended(store, "bg_3", scope=Scope(f"o{text}'", f"s{text}"))
    assert await store.newest(strange, limit=10) == [mine]
    assert await store.get("bg_1", strange) == mine
    assert [signal.task for signal in await store.signals(strange)] == ["bg_1"]
    assert await store.acknowledge([end_key("bg_1"), end_key("bg_2")], strange) == 1


@pytest.mark.parametrize("name", [*WHOLE, *BROKEN])
async def test_looking_for_a_hostile_id_finds_nothing_and_breaks_nothing(
    store: Store, name: str
) -> None:
    text = {**WHOLE, **BROKEN}[name] or "x"
    task = await queued(store, "bg_1")
    assert await store.get(text) is None
    assert await store.find(text, ADA, 10) == []
    assert await store.request_stop(text, ADA, 5.0) is None
    assert await store.acknowledge([text], ADA) == 0
    assert await store.forget([text]) == 0
    assert await store.events(text) == []
    assert await get(store, "bg_1") == task
    assert task.state is State.QUEUED


# Not st.text, which leaves surrogates out whatever it is told. Those that Python makes of bytes;
# a pair of both halves is, by the rules of JSON, the character that they stand for.
any_text = st.lists(
    st.characters(exclude_categories=["Cs"])
    | st.sampled_from([*"\x00'\"\\\n", "\udcff", "\udc80"]),
    max_size=20,
).map("".join)
any_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=8,
)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # one record serves for all
)
@given(st.dictionaries(any_text, any_json, max_size=4), any_json, any_text)
async def test_e12_any_json_comes_back_exactly(
    store: Store, spec: dict[str, object], result: object, text: str
) -> None:
    wanted = new_task(spec=spec, title=text)
    task = await store.create(wanted, limit=PLENTY)
    assert task.spec == spec
    assert await store.create(wanted, limit=PLENTY) == task
    await store.claim(task.id, 1, PLACE)
    ending = Ending.failed(ErrorKind.ERROR, text, result=result)
    assert await store.finish(task.id, 1, ending) is not None
    assert (await get(store, task.id)).result == result
