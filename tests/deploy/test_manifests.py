"""X10: the files of `deploy/` are what Compose and Kubernetes take, and name what there is."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from compose_spec import PyCompose
from typer.main import get_command

from backburner.cli.program import build
from backburner.model.limits import DEFAULT_MAX_RUNTIME_S, Settings
from backburner.store.postgres.footprint import APPLICATION, GATEWAY, PROGRAM, WORKER

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def resources() -> Iterator[dict[str, Any]]:
    for path in MANIFESTS:
        yield from yaml.safe_load_all(path.read_text())


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for each in resources():
        if "template" in each.get("spec", {}):
            yield each["metadata"]["name"], each["spec"]["template"]["spec"]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_kubernetes_takes_it(path: Path) -> None:
    for document in yaml.safe_load_all(path.read_text()):
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
        kubernetes_validate.validate(document, "1.31.0", strict=True)


def test_what_kubernetes_does_not_take_is_noticed() -> None:
    document = next(each for each in resources() if each["kind"] == "StatefulSet")
    document["spec"]["template"]["spec"]["terminationGracePeriod"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, "1.31.0", strict=True)


def test_compose_takes_it() -> None:
    understood = PyCompose.from_json(json.dumps(compose())).to_spec().model_dump()
    assert set(understood["services"]) == {"database", "migrate", "serve", "worker"}


def test_what_compose_does_not_take_is_noticed() -> None:
    wrong = compose()
    wrong["services"]["worker"]["stop_grace"] = "1h"
    with pytest.raises(ValueError, match="stop_grace"):
        PyCompose.from_json(json.dumps(wrong)).to_spec()


def _commands() -> Iterator[list[str]]:
    for service in compose()["services"].values():
        if service["image"] == "backburner":
            yield service["command"]
    for _, pod in pods():
        for container in pod["containers"]:
            if container["image"].startswith("backburner"):
                yield container["args"]


@pytest.mark.parametrize("words", [*_commands()], ids=" ".join)
def test_every_command_is_one_of_ours(words: list[str]) -> None:
    command: Any = get_command(build())
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    with command.make_context("backburner", words) as context:
        assert not context.args


def test_every_setting_is_one_of_ours() -> None:
    text = "".join(path.read_text() for path in (*MANIFESTS, DEPLOY / "compose.yaml"))
    named = set(re.findall(r"\bBACKBURNER_([A-Z_]+)(?=:)", text))
    assert "ARTIFACTS" in named
    known = {*(name.upper() for name in Settings.__dataclass_fields__), "HOME", "DATABASE"}
    assert named <= {*known, "PASSWORD"}


def test_what_a_pod_refers_to_is_there() -> None:
    names = {(each["kind"], each["metadata"]["name"]) for each in resources()}
    for name, pod in pods():
        for container in pod["containers"]:
            for each in container.get("envFrom", []):
                assert ("ConfigMap", each["configMapRef"]["name"]) in names, name
            for each in container["env"]:
                if "valueFrom" in each:
                    assert ("Secret", each["valueFrom"]["secretKeyRef"]["name"]) in names, name
                else:
                    assert "PASSWORD" not in each["name"], "a secret is in no manifest of a pod"


_RESERVED = 3
"""That PostgreSQL lets only superusers have, unless told otherwise."""
_PROGRAMS = 4
"""`migrate`, `token create`, `doctor`, and a command that starts another: each for a moment."""


def _most_connections(words: list[str]) -> int:
    found = dict(pair.split("=") for pair in words if "=" in pair)
    return int(found.get("max_connections", 100))


def _compose() -> tuple[int, list[tuple[list[str], int]]]:
    """What its database lets in, and what goes on running there, how often: as its first lines say

    that it is started.
    """
    services = compose()["services"]
    scaled = dict(re.findall(r"--scale (\w+)=(\d+)", (DEPLOY / "compose.yaml").read_text()))
    assert scaled.keys() == {"worker"}
    ours = [
        (service["command"], int(scaled.get(name, 1)))
        for name, service in services.items()
        if service["image"] == "backburner" and service["restart"] == "unless-stopped"
    ]
    return _most_connections(services["database"].get("command", [])), ours


def _kubernetes() -> tuple[int, list[tuple[list[str], int]]]:
    most, ours = 0, list[tuple[list[str], int]]()
    for each in resources():
        if each["kind"] in ("Deployment", "StatefulSet"):
            (container,) = each["spec"]["template"]["spec"]["containers"]
            if container["image"].startswith("postgres"):
                most = _most_connections(container.get("args", []))
            else:
                ours.append((container["args"], each["spec"]["replicas"]))
    return most, ours


@pytest.mark.parametrize("described", [_compose, _kubernetes])
def test_the_database_lets_in_all_that_there_is_also_while_it_is_replaced(
    described: Callable[[], tuple[int, list[tuple[list[str], int]]]],
) -> None:
    """The old ones finish what they have for up to an hour, when the new ones are there already."""
    most, ours = described()
    takes = {"worker": WORKER, "serve": APPLICATION}
    assert {words[0] for words, _ in ours} == takes.keys()
    together = sum(takes[words[0]] * replicas for words, replicas in ours)
    assert most >= 2 * together + _PROGRAMS * PROGRAM + _RESERVED


def test_what_is_said_of_connections_is_so() -> None:
    said = (DEPLOY.parent / "docs" / "upgrading.md").read_text()
    named = {"program": PROGRAM, "server": APPLICATION, "gateway": GATEWAY, "worker": WORKER}
    table = dict(re.findall(r"^\| (?:a|an|another) (\w+)\b[^|]*\| (\d+) \|", said, re.MULTILINE))
    assert table == {name: str(most) for name, most in named.items()}
    for path in (DEPLOY / "compose.yaml", DEPLOY / "kubernetes" / "postgres.yaml"):
        text = path.read_text()
        assert f"a worker has up to {WORKER} connections, a server {APPLICATION}:" in text.lower()
        assert f"for each worker more, {2 * WORKER} more" in text.lower()


def test_a_worker_has_the_time_to_drain() -> None:
    (pod,) = [pod for name, pod in pods() if name == "worker"]
    assert pod["terminationGracePeriodSeconds"] > DEFAULT_MAX_RUNTIME_S
    worker = compose()["services"]["worker"]
    given = re.fullmatch(r"(\d+)h(\d+)m", worker["stop_grace_period"])
    assert given is not None
    assert int(given[1]) * 3600 + int(given[2]) * 60 > DEFAULT_MAX_RUNTIME_S


def test_the_probes_ask_where_a_worker_listens() -> None:
    (pod,) = [pod for name, pod in pods() if name == "worker"]
    (container,) = pod["containers"]
    listens = container["args"][container["args"].index("--listen") + 1].rpartition(":")[2]
    assert int(listens) == container["ports"][0]["containerPort"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert f":{listens}/readyz" in str(compose()["services"]["worker"]["healthcheck"]["test"])


def test_the_image_installs_what_its_commands_need() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    extras = re.search(r"\[([a-z,]+)\]\"", text)
    assert extras is not None
    assert {"postgres", "serve"} <= set(extras[1].split(","))
    assert re.search(r"^USER \d+$", text, re.MULTILINE), "commands of strangers run in it"
