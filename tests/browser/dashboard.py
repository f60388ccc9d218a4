"""A server, a browser that is logged in to it, and the API beside it, as a person and a script have
them."""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page

from tests.ports import free_port
from tests.waiting import wait_until

PATIENCE = 60_000
"""Milliseconds that the page may take for anything: a busy machine is slow."""

WHILE_AWAY = ("Failed to load resource", "net::ERR_")
"""What a browser itself says of a server that is not there."""


class Dashboard:
    """Everything of one test."""

    def __init__(self, home: Path, browser: Browser, variables: dict[str, str]) -> None:
        self._home = home
        self._browser = browser
        self._variables = variables
        self._server: subprocess.Popen[str] | None = None
        self._contexts: list[BrowserContext] = []
        self._state: Any = None
        self.url = ""
        self.login = ""
        self.complaints: list[str] = []
        self.start()

    # The server

    def start(self, port: int | None = None) -> None:
        """Serve, and return when requests are answered."""
        port = free_port() if port is None else port
        command = [sys.executable, "-m", "backburner.cli", "serve", "--port", str(port), "--json"]
        self._server = subprocess.Popen(
            [*command, "--log-level", "error"],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | self._variables,
        )
        assert self._server.stdout is not None
        said = json.loads(self._server.stdout.readline())
        self.url, self.login = said["url"], said["login"]

    def stop(self) -> None:
        """End the server in order."""
        if self._server is None:
            return
        self._server.terminate()
        self._server.communicate(timeout=60)
        self._server = None

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def close(self) -> None:
        """The pages first: they would complain."""
        for context in self._contexts:
            context.close()
        self.stop()

    # The browser

    def page(self, path: str = "/", *, logged_in: bool = True, **options: Any) -> Page:
        """A page of its own, at a place of the dashboard."""
        if logged_in and self._state is None:
            self._state = self._log_in()
        context = self._context(storage_state=self._state if logged_in else None, **options)
        page = context.new_page()
        page.on("console", self._heard)
        page.on("pageerror", self._broke)
        page.goto(f"{self.url}/#{path}")
        return page

    def _log_in(self) -> Any:
        context = self._context()
        page = context.new_page()
        page.on("console", self._heard)
        page.goto(self.login)
        page.get_by_role("heading", name="Overview").wait_for()
        return context.storage_state()

    def _context(self, **options: Any) -> BrowserContext:
        context = self._browser.new_context(reduced_motion="reduce", **options)
        context.set_default_timeout(PATIENCE)
        self._contexts.append(context)
        return context

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(WHILE_AWAY):
            self.complaints.append(message.text)

    def _broke(self, error: Error) -> None:
        self.complaints.append(str(error))

    # The API

    @property
    def token(self) -> str:
        """That of the home."""
        return (self._home / "token").read_text().strip()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """As a script with the token of the home."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def run(self, command: str, *, session: str = "test", **options: Any) -> str:
        """Start a command; its id."""
        body = {"kind": "shell", "command": command, **options}
        return self.call("POST", f"/v1/sessions/{session}/tasks", body)["id"]

    def state(self, task: str) -> str:
        """Of a task, now."""
        return self.call("GET", f"/v1/tasks/{task}")["state"]

    def wait_for(self, task: str, state: str) -> None:
        """Until it is so."""
        wait_until(lambda: self.state(task) == state, message=f"{task} never was {state}")
