"""Calls of Slack's Web API, through its own client: one way for all methods."""

import json
import logging
from typing import Any, cast

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient


class WebApi:
    """A client with a token, for as long as its session is open."""

    def __init__(
        self, token: str, base: str, session: aiohttp.ClientSession, log: logging.Logger
    ) -> None:
        self.base_url = f"{base}/api/"
        self._session = session
        self._client = AsyncWebClient(
            token,
            base_url=self.base_url,
            session=session,
            logger=log,
            retry_handlers=[],  # a post whose answer was lost is looked for, not made again
        )

    async def call(self, method: str, /, **fields: Any) -> dict[str, Any]:
        """What Slack answers. As a form: some of the methods do not take JSON."""
        form = {
            name: json.dumps(value) if isinstance(value, dict | list | bool) else value
            for name, value in fields.items()
            if value is not None
        }
        answer = await self._client.api_call(method, data=form)  # pyright: ignore[reportUnknownMemberType]
        return cast("dict[str, Any]", answer.data)  # pyright: ignore[reportUnknownMemberType]

    async def upload(self, address: str, data: bytes) -> int:
        """Put a file where Slack said; the status of its answer."""
        async with self._session.post(address, data=data) as answer:
            return answer.status
