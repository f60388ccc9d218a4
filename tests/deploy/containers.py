"""What `deploy/` would run in containers, run here: the same words, settings and probes.

Only what a cluster decides is put in its place: the name of the database, ports, volumes.
"""

import contextlib
import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from tests.ports import free_port
from tests.waiting import wait_until

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PASSWORD = "hunter2hunter2"
POD = "10.42.0.7"
"""What a kubelet calls whom it asks."""

Ask = Callable[[], bool]


@dataclass(frozen=True)
class Container:
    """One of ours, as a file describes it."""

    name: str
    words: list[str]
    settings: dict[str, str]
    port: int | None = None
    """On which it listens in its container."""
    probes: dict[str, Any] = field(default_factory=dict[str, Any])
    """Words to run, or a path to ask for, by what they are for."""
    grace_s: float = 10.0


def from_compose() -> dict[str, Container]:
    """Those of the Compose file."""
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    found: dict[str, Container] = {}
    for name, service in services.items():
        if service["image"] != "backburner":
            continue
        settings = {key: _filled_in(value) for key, value in service["environment"].items()}
        check = service.get("healthcheck", {}).get("test")
        found[name] = Container(
            name,
            service["command"],
            settings,
            {"worker": 9464, "serve": 8642}.get(name),
            {"ready": check[1:]} if check else {},
            _seconds(service.get("stop_grace_period", "10s")),
        )
    return found


def from_kubernetes() -> dict[str, Container]:
    """Those of the manifests."""
    documents = [
        document
        for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text())
    ]
    by_kind = {(each["kind"], each["metadata"]["name"]): each for each in documents}
    found: dict[str, Container] = {}
    for each in documents:
        pod = each.get("spec", {}).get("template", {}).get("spec")
        if pod is None or not pod["containers"][0]["image"].startswith("backburner"):
            continue
        (container,) = pod["containers"]
        settings: dict[str, str] = {}
        for source in container["envFrom"]:
            settings |= by_kind["ConfigMap", source["configMapRef"]["name"]]["data"]
        for variable in container["env"]:
            secret = variable["valueFrom"]["secretKeyRef"]
            assert secret["key"] in by_kind["Secret", secret["name"]]["stringData"]
            settings[variable["name"]] = PASSWORD
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
        probes = {
            what: container[f"{what}nessProbe"]["httpGet"]
            for what in ("live", "readi")
            if f"{what}nessProbe" in container
        }
        assert all(probe["port"] in ports for probe in probes.values())
        name = each["metadata"]["name"]
        found[name] = Container(
            name,
            container["args"],
            settings,
            next(iter(ports.values()), None),
            {{"readi": "ready"}.get(what, what): probe["path"] for what, probe in probes.items()},
            pod.get("terminationGracePeriodSeconds", 30),
        )
    return found


class Running:
    """A container that runs as a process, with a volume of its own."""

    def __init__(self, container: Container, address: str, volume: Path) -> None:
        self._container = container
        self.port = free_port()
        self.log = volume / f"{container.name}.log"
        database = re.compile(r"postgresql://backburner@[^/]+/backburner")
        self.settings = {
            key: database.sub(address, value).replace("/srv/artifacts", f"{volume}/artifacts")
            for key, value in container.settings.items()
        }
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("BACKBURNER")},
            **self.settings,
            "XDG_STATE_HOME": str(volume / "state"),
        }
        words = [self._here(word) for word in container.words]
        if container.name == "serve":
            words += ["--port", str(self.port)]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "backburner.cli", *words],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _here(self, word: str) -> str:
        mine = word.replace("0.0.0.0", "127.0.0.1")
        return mine.replace(f":{self._container.port}", f":{self.port}")

    def passes(self, probe: str) -> bool:
        """Whether a probe of the file would be content."""
        asked = self._container.probes[probe]
        if isinstance(asked, list):
            words = [self._here(str(word)) for word in cast("list[object]", asked)]
            assert words[0] == "python"
            done = subprocess.run(
                [sys.executable, *words[1:]], capture_output=True, timeout=30, check=False
            )
            return done.returncode == 0
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with contextlib.suppress(OSError), contextlib.closing(connection):
            connection.request("GET", asked, headers={"Host": f"{POD}:{self._container.port}"})
            return connection.getresponse().status == 200
        return False

    def until_ready(self) -> None:
        wait_until(
            lambda: self.process.poll() is not None or self.passes("ready"),
            timeout=60,
            message=self.log.read_text,
        )
        assert self.process.poll() is None, self.log.read_text()

    def until_done(self) -> None:
        """A job: it ends by itself, and well."""
        assert self.process.wait(60) == 0, self.log.read_text()

    def stop(self) -> float:
        """As Docker and Kubernetes do: TERM, and KILL when its time is up. How long it took."""
        began = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(min(self._container.grace_s, 100))
        return time.monotonic() - began


def _filled_in(value: str) -> str:
    return re.sub(r"\$\{BACKBURNER_PASSWORD[^}]*\}", PASSWORD, value)


def _seconds(text: str) -> float:
    units = {"h": 3600, "m": 60, "s": 1}
    return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+)([hms])", text))
