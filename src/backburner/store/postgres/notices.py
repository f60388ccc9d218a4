"""What a transaction has changed, as notifications carry it: JSON that fits into one.

A statement that is not named here may have changed anything, so whoever adds one and forgets this
list costs others a look, and nobody their news.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from backburner.model.events import EventKind
from backburner.model.signals import INBOX
from backburner.store.news import News, Subject
from backburner.store.record.transaction import Row

_FITS_BYTES = 7000
"""Of names in one notification, which may have less than 8000."""

ANYTHING = ""
"""What a notification says of a change that it does not tell of."""

QUIET = frozenset({"nodes_take", "contact_prove"})
"""What nobody can see who is not the engine: a commit of nothing else is not told of."""

_TOLD_BY_EVENTS = frozenset({
    "tasks_insert", "jobs_defer", "tasks_begin", "tasks_claim", "task_requeue",
    "task_fail_try", "task_park", "task_note", "task_request_stop",
    "task_begin_ending", "tasks_end", "task_asks", "task_is_answered", "task_is_talked_about",
    "question_ask", "question_answer", "question_withdraw", "message_send", "event_insert",
    "events_insert", "task_gives_up_leftovers",
})  # fmt: skip
_OF_NO_CONCERN = frozenset({
    "signals_claim", "signals_renew", "secrets_forget", "token_used", "task_reported",
    "question_handed_on", "message_taken", "node_name_take",
    "node_names_forget", "turns_forget", "contenders_forget",
})  # fmt: skip
"""Nobody waits for these: they leave less to do, or later."""

_SUBJECTS: Mapping[str, frozenset[Subject]] = {
    **dict.fromkeys(QUIET | _TOLD_BY_EVENTS | _OF_NO_CONCERN, frozenset[Subject]()),
    **dict.fromkeys(
        (
            "mirror_begin", "mirror_forget", "mirror_empty", "mirror_take_back", "mirror_put",
            "mirror_drop", "tasks_wrote", "artifacts_begin", "artifacts_put", "artifacts_removed",
        ),
        frozenset({Subject.OUTPUT}),
    ),
    **dict.fromkeys(("input_send", "input_done", "input_forget"), frozenset({Subject.INPUT})),
    **dict.fromkeys(
        (
            "schedule_insert", "schedule_move", "schedule_put_off", "schedule_pause",
            "schedule_resume", "schedule_cancel", "schedule_bring_forward", "schedule_fired",
            "firing_insert", "firings_trim", "firings_undo", "schedule_undo",
            "schedules_forget",
        ),
        frozenset({Subject.SCHEDULES}),
    ),
    **dict.fromkeys(
        (
            "signals_release", "signals_postpone", "signal_failed", "signal_drop", "signal_resend",
            "signal_answered", "signals_of_ended_questions", "activity_replace",
            "activity_is_over", "deliveries_release",
        ),
        frozenset({Subject.INBOX, Subject.PUSHES}),
    ),
    "offer_put": frozenset({Subject.OFFERS}),
}  # fmt: skip


def news_of(events: Iterable[tuple[str, EventKind]], ran: Mapping[str, list[Row]]) -> News | None:
    """What the statements that ran have changed; None where it could be anything."""
    about: set[Subject] = set()
    for name, rows in ran.items():
        if name == "signals_insert":
            about.update(Subject.INBOX if row[-1] == INBOX else Subject.PUSHES for row in rows)
        elif name == "signals_acknowledge":  # a channel may have its next, an inbox has none more
            about.update(Subject.PUSHES for row in rows if row[-1] != INBOX)
        elif name in _SUBJECTS:
            about |= _SUBJECTS[name]
        else:
            return None
    return News(tuple(dict.fromkeys(events)), frozenset(about))


def payloads(news: News | None) -> Iterator[str]:
    """The notifications that tell of it."""
    if news is None:
        yield ANYTHING
        return
    subjects = sorted(news.about)
    for part in _parts(news.events):
        by_kind: dict[str, list[str]] = {}
        for task, kind in part:
            by_kind.setdefault(kind, []).append(task)
        yield json.dumps({"events": by_kind, "about": subjects}, separators=(",", ":"))
        subjects = []


def _parts(events: Sequence[tuple[str, EventKind]]) -> Iterator[list[tuple[str, EventKind]]]:
    """As much as fits into one notification each; at least one, perhaps with nothing."""
    part: list[tuple[str, EventKind]] = []
    size = 0
    for task, kind in events:
        needs = len(json.dumps(task)) + len(kind) + 8
        if part and size + needs > _FITS_BYTES:
            yield part
            part, size = [], 0
        part.append((task, kind))
        size += needs
    yield part


def told_by(payload: str) -> News | None:
    """What a notification tells of. None where it says nothing, or what is not understood: a

    program of another version, or anybody who may write to the database.
    """
    try:
        said = json.loads(payload)
        events = tuple(
            (str(task), EventKind(kind)) for kind, tasks in said["events"].items() for task in tasks
        )
        return News(events, frozenset(Subject(each) for each in said["about"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
