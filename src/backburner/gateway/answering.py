"""The built-in agent as a program: what the keeper runs for a prompt of a chat.

It reads the prompt from its standard input. What the model says on the way is its output; its
answer is the task's result, and pictures are its artifacts. In a turn of a chat it also has the
background tools of that chat.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from backburner.app import Backburner, Session
from backburner.gateway.agent_tools import INSTRUCTIONS, tools_for
from backburner.gateway.people import TALK
from backburner.gateway.talking import CHAT
from backburner.gateway.uploads import FOLDER
from backburner.model.errors import BackburnerError
from backburner.model.home import AttemptFolder
from backburner.model.limits import RESULT_MAX_BYTES, Settings
from backburner.model.outcome import Outcome
from backburner.model.redaction import redact_text
from backburner.store.protocol import Scope
from backburner.work.agents.attachments import Attachment, attached
from backburner.work.agents.builtin import INSTRUCTIONS as ALONE
from backburner.work.agents.builtin import ModelAgent
from backburner.work.agents.command import ATTACHED
from backburner.work.agents.media import Media, keep
from backburner.work.agents.protocol import AgentRequest
from backburner.work.agents.running import run_agent
from backburner.work.child.context import context_of
from backburner.work.reporting import VARIABLE, append, quoted

_LONGEST_ESCAPE = 12
"""Characters of a report for one of a text."""


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    prompt = sys.stdin.buffer.read().decode(errors="replace")
    name = arguments[0] if arguments else ""
    folder = arguments[arguments.index("--folder") + 1] if "--folder" in arguments else None
    try:
        return asyncio.run(_answer(prompt, name, folder, shell="--shell" in arguments))
    except BackburnerError as error:
        return _failed(str(error))
    except Exception as error:  # noqa: BLE001 - a sentence, and no traceback, is the last line
        return _failed(f"{type(error).__name__}: {error}")


async def _answer(prompt: str, name: str, folder: str | None, *, shell: bool) -> int:
    # What is started in a turn is the chat's, and must not end with it.
    task_id = os.environ.pop("BACKBURNER_TASK_ID")
    own = AttemptFolder(os.path.dirname(os.environ[VARIABLE]))
    home = Path(os.environ["BACKBURNER_HOME"])
    async with Backburner.open(home) as backburner:
        task = await backburner.store.get(task_id)
        if task is None:
            return _failed("the task is not there any more")
        chat = Scope(task.owner, task.session.removesuffix(TALK))
        session = backburner.session(chat.session or "", owner=chat.owner, folder=folder)
        os.environ["BACKBURNER_FOLDER"] = session.folder
        context = context_of(own)
        registry = tools_for(session, shell=shell) if name == CHAT else None
        request = AgentRequest(prompt, _attachments(prompt, session), registry=registry)
        agent = ModelAgent(instructions=INSTRUCTIONS if name == CHAT else ALONE)
        outcome, media = await run_agent(lambda: agent, request, context)
        return _ended(outcome, media, own)


def _ended(outcome: Outcome, media: Media, own: AttemptFolder) -> int:
    if not outcome.success:
        return _failed(outcome.summary or "the agent says that it failed")
    kept, refused = keep(media, own, Settings.from_environment())
    for path in kept:
        append(own.report, "artifact", quoted(os.path.basename(path)))
    for reason in refused:
        sys.stderr.write(f"{reason}\n")
    append(own.report, "result", _quoted(str(outcome.result or "")))
    return 0


def _quoted(answer: str) -> str:
    """The answer as a line of the report. One of emoji alone is several times as long there."""
    line = quoted(answer)
    if len(line) <= RESULT_MAX_BYTES:
        return line
    return quoted(f"{answer[: RESULT_MAX_BYTES // _LONGEST_ESCAPE - 100]}\n[the rest is left out]")


def _failed(reason: str) -> int:
    sys.stdout.flush()
    sys.stderr.write(f"{' '.join(redact_text(reason).split())}\n")
    return 1


def _attachments(prompt: str, session: Session) -> Sequence[Attachment]:
    """The files that came with the message. Only those: a prompt can name any path."""
    _, found, listed = prompt.rpartition(ATTACHED)
    if not found:
        return ()
    place = os.path.join(session.folder, FOLDER)
    paths = [path for path in listed.splitlines() if os.path.dirname(path) == place]
    return attached([path for path in paths if not os.path.islink(path)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
