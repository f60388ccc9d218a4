"""What schedules of the tests start: functions and tools that another process can import."""

from pathlib import Path

from backburner import Context, tool


def write(path: str, text: str) -> str:
    """Append to a file."""
    with Path(path).open("a") as file:
        file.write(f"{text}\n")
    return f"wrote {text}"


@tool(background=True, idempotent=True)
async def note_down(context: Context, path: str, text: str) -> dict[str, str]:
    """Append a line to a file."""
    await context.status("writing")
    write(path, text)
    return {"written": text}


@tool(background=True)
async def sign_in(account: dict[str, str]) -> None:
    """Sign in somewhere."""
