"""Limits and defaults: the numbers that the requirements fix, and how a home is told otherwise."""

import pytest

from backburner.model import limits
from backburner.model.limits import Settings


def test_a2_b2_e3_e6_e12_the_defaults_are_those_of_the_requirements() -> None:
    assert limits.DEFAULT_MAX_RUNTIME_S == 3600  # A2
    assert limits.PREVIEW_MAX_CHARS == 60  # B2
    assert Settings() == Settings(
        log_head=256 * 1024,  # E6
        log_tail=1024 * 1024,  # E6
        shell_per_session=64,  # E3
        artifact_limit=100 * 1024 * 1024,  # X5
        artifacts_limit=1024 * 1024 * 1024,  # X5
        retention_s=30 * 24 * 3600,  # E12
        keeper_idle_s=30,
        cgroups=True,
    )


def test_the_environment_is_obeyed() -> None:
    assert Settings.from_environment({}) == Settings()
    told = Settings.from_environment(
        {
            "BACKBURNER_LOG_HEAD": "65536",
            "BACKBURNER_LOG_TAIL": "0",
            "BACKBURNER_SHELL_PER_SESSION": "3",
            "BACKBURNER_RETENTION_S": "1.5",
            "BACKBURNER_KEEPER_IDLE_S": "0",
            "BACKBURNER_CGROUPS": "0",
            "BACKBURNER_HOME": "/somewhere",
            "LOG_HEAD": "1",
        }
    )
    assert told == Settings(
        log_head=65536,
        log_tail=0,
        shell_per_session=3,
        retention_s=1.5,
        keeper_idle_s=0.0,
        cgroups=False,
    )
    assert isinstance(told.log_head, int)
    assert isinstance(told.retention_s, float)
    assert told.cgroups is False


def test_the_environment_of_this_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKBURNER_SHELL_PER_SESSION", "7")
    assert Settings.from_environment().shell_per_session == 7


@pytest.mark.parametrize("name", ["LOG_HEAD", "SHELL_PER_SESSION", "RETENTION_S", "CGROUPS"])
@pytest.mark.parametrize(
    "text", ["", " ", "many", "-1", "-0.5", "1h", "nan", "inf", "-inf", "1e999", "0x10"]
)
def test_a_value_that_is_none_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"BACKBURNER_{name}=") as refusal:
        Settings.from_environment({f"BACKBURNER_{name}": text})
    assert repr(text) in str(refusal.value)
    assert "number" in str(refusal.value)
