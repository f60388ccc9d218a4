"""The one door from code without `await` to the asynchronous core."""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

Result = TypeVar("Result")


class Portal:
    """An event loop in a thread, and the way into it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="backburner-portal", daemon=True
        )
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run it there, and wait for it here."""
        waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()  # Ctrl-C here must not leave it running there
            raise

    def iterate(self, stream: AsyncIterator[Result]) -> Iterator[Result]:
        """An iterator over what comes out of it."""

        async def following() -> tuple[bool, Result | None]:
            try:
                return True, await anext(stream)
            except StopAsyncIteration:
                return False, None

        async def close() -> None:
            closing = getattr(stream, "aclose", None)
            if closing is not None:
                await closing()

        try:
            while True:
                more, value = self.call(following())
                if not more:
                    return
                yield value  # pyright: ignore[reportReturnType]  # a value where there is more
        finally:
            self.call(close())

    def close(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
