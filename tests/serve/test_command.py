"""`backburner serve` and `backburner token`, as a person starts them."""

import json
import os
import signal
import ssl
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from backburner.cli.program import run_program
from backburner.model.errors import SPELLINGS, BackburnerError, NotFound, UsageError
from tests.cli.program import COMMAND
from tests.serve.client import TIME_LIMIT, is_problem

pytestmark = pytest.mark.slow

Started = tuple[dict[str, Any], "subprocess.Popen[str]"]


@pytest.fixture
def token(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """`backburner token …`; answers what it says."""

    def called(*words: str) -> str:
        assert run_program(["token", *words]) == 0
        said = capsys.readouterr()
        return said.out + said.err

    return called


@pytest.fixture
def start(home: Path) -> Iterator[Callable[..., Started]]:
    """Starts a program that prints where it serves."""
    running: list[subprocess.Popen[str]] = []

    def started(*words: str) -> Started:
        process = subprocess.Popen(
            [*COMMAND, "serve", "--port", "0", "--json", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        running.append(process)
        assert process.stdout is not None
        return json.loads(process.stdout.readline()), process

    yield started
    for process in running:
        process.kill()
        process.communicate(timeout=TIME_LIMIT)


def test_it_serves_until_it_is_asked_to_end(
    home: Path, start: Callable[..., Started], token: Callable[..., str]
) -> None:
    said, process = start()
    path = Path(said["token_file"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    headers = {"Authorization": f"Bearer {path.read_text().strip()}"}
    with httpx2.Client(base_url=said["url"], headers=headers, timeout=TIME_LIMIT) as client:
        assert client.get("/v1/me").json()["role"] == "admin"
        names = [tool["name"] for tool in client.get("/v1/tools").json()["items"]]
        assert names == ["grep_files", "web_fetch"], "those of the default registry that may"
        code = said["login"].partition("#login=")[2]
        assert client.post("/v1/login", json={"code": code}).status_code == 200

        made = json.loads(token("create", "--role", "viewer", "--label", "wall", "--json"))
        shown = {"Authorization": f"Bearer {made['token']}"}
        assert client.get("/v1/me", headers=shown).json()["role"] == "viewer"
        listed = json.loads(token("ls", "--json"))
        assert made["token"] not in json.dumps(listed)
        (own,) = [each for each in listed if each["id"] == made["id"]]
        assert (own["label"], own["revoked_at"]) == ("wall", None)
        assert own["last_used_at"] is not None
        token("revoke", made["id"][:10])
        assert is_problem(client.get("/v1/me", headers=shown), 401, "unauthenticated")
        process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=TIME_LIMIT)
    assert (process.returncode, out) == (0, ""), err
    assert "Traceback" not in err
    for line in err.splitlines():
        assert json.loads(line)["level"] in ("info", "warning"), line
    again, _ = start()
    assert Path(again["token_file"]).read_text() == path.read_text(), "the same token"
    with httpx2.Client(base_url=again["url"], headers=headers, timeout=TIME_LIMIT) as client:
        assert client.get("/v1/me").status_code == 200


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--host", "0.0.0.0"], 4, "unencrypted"),
        (["--host", "203.0.113.1", "--behind-proxy"], 2, "cannot be used"),
        (["--tls-cert", "x"], 2, "a certificate and its key"),
        (["--tls-cert", "/nix", "--tls-key", "/nix"], 2, "certificate and its key cannot"),
        (["--log-level", "nix"], 2, "nix"),
    ],
)
def test_what_would_be_unsafe_is_refused_with_the_reason(
    home: Path, words: list[str], status: int, said: str
) -> None:
    with pytest.raises(BackburnerError, match=said) as refused:
        run_program(["serve", "--port", "0", *words])
    assert SPELLINGS[refused.value.code].exit_status == status
    assert refused.value.remedy


def test_over_tls(home: Path, start: Callable[..., Started], tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    _make_certificate(cert, key)
    said, _ = start("--tls-cert", str(cert), "--tls-key", str(key))
    assert said["url"].startswith("https://127.0.0.1:")
    trust = ssl.create_default_context(cafile=str(cert))
    with httpx2.Client(base_url=said["url"], verify=trust, timeout=TIME_LIMIT) as client:
        answer = client.get("/healthz")
        assert answer.json()["ready"] is True
        assert "max-age" in answer.headers["strict-transport-security"]


def _make_certificate(cert: Path, key: Path) -> None:
    from datetime import UTC, datetime, timedelta
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(private, hashes.SHA256())
    )
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def test_tokens_are_made_listed_and_taken_back(home: Path, token: Callable[..., str]) -> None:
    assert "no tokens" in token("ls")
    text = token("create", "--only-session", "chat", "--expires", "1h").strip()
    name = text.split("_")[1]
    listed = token("ls")
    assert name in listed
    assert text not in listed
    assert "chat" in listed
    with pytest.raises(NotFound):
        run_program(["token", "revoke", "nix"])
    with pytest.raises(UsageError, match="no role"):
        run_program(["token", "create", "--role", "nix"])
    assert name in token("revoke", name[:8])
    assert "revoked" in token("ls")
    assert json.loads(token("ls", "--json"))[0]["revoked_at"] is not None


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("phases", "examples"),
    [
        pytest.param("examples,fuzzing", "4", id="short"),
        pytest.param(
            "examples,coverage,fuzzing,stateful", "50", id="long", marks=pytest.mark.faults
        ),
    ],
)
def test_what_schemathesis_makes_of_the_document(
    home: Path, tmp_path: Path, phases: str, examples: str
) -> None:
    """Hundreds of requests, right and wrong, by the description of the API; none of them finds an
    answer that the description does not allow, or an error of ours.

    Left out: the endless stream of everything, and the check that whatever fits the schema is
    accepted, because a schema cannot say which cron expressions mean something.
    """
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("fuzzed_server.py")), str(home)],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        cwd=tmp_path,
    )
    try:
        assert server.stdout is not None
        said = json.loads(server.stdout.readline())
        token = Path(said["token_file"]).read_text().strip()
        repository = str(Path(__file__).resolve().parent.parent.parent)
        done = subprocess.run(
            [
                str(Path(sys.executable).with_name("schemathesis")), "run",
                f"{said['url']}/openapi.json", "--header", f"Authorization: Bearer {token}",
                "--exclude-path", "/v1/events", "--exclude-checks", "positive_data_acceptance",
                "--phases", phases, "--max-examples", examples,
                "--generation-deterministic", "--no-color", "--request-timeout", "60",
            ],
            cwd=tmp_path,
            env=os.environ
            | {"SCHEMATHESIS_HOOKS": "tests.serve.fuzz_hooks", "PYTHONPATH": repository},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-20_000:]
        assert "found" not in done.stdout.rpartition("Test cases:")[2]
    finally:
        server.terminate()
        server.communicate(timeout=TIME_LIMIT)
