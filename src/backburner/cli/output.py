"""A piece of a task's output as JSON."""

from typing import Any

from backburner.app import Task
from backburner.work.log.read import Chunk


def chunk_document(task: Task, chunk: Chunk) -> dict[str, Any]:
    """What was read, and the cursor to go on from."""
    return {
        "task": task.id,
        "state": task.state.value,
        "text": chunk.text,
        "stderr": chunk.stderr_text,
        "cursor": chunk.cursor,
        "dropped": chunk.dropped,
        "total": chunk.total,
        "complete": chunk.complete,
    }
