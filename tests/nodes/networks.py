"""A network of its own for machines that are to be cut off: namespaces with veth, and `tc`.

For tests that `apart.py` runs in a network namespace, in which this process and the database are;
each machine is a further one, joined to it by a wire. All of it goes with that run.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = "10.77.0.1"
"""The address of the database, which every machine reaches through its own wire."""

_SWITCH = "switch"

_BAD = (
    ("netem", "delay", "20ms", "5ms", "loss", "5%"),
    # Where the kernel has no netem: a wire that is too slow, and drops what does not fit its queue.
    ("tbf", "rate", "2mbit", "burst", "8kb", "latency", "20ms"),
)


@dataclass(frozen=True, slots=True)
class Machine:
    """A network namespace at the other end of a wire."""

    name: str
    number: int

    @property
    def _wire(self) -> str:
        return f"w{self.number}"

    @property
    def enter(self) -> list[str]:
        """What stands before a command that is to run there."""
        return ["nsenter", f"--net=/run/netns/{self.name}"]

    def cut_off(self) -> None:
        """No packet gets through, and neither side is told."""
        run("ip", "link", "set", self._wire, "nomaster")

    def join(self) -> None:
        """The wire is whole again."""
        run("ip", "link", "set", self._wire, "master", _SWITCH)

    def worsen(self) -> str:
        """Packets come late, or not at all; how that is done here."""
        for how in _BAD:
            both = [
                subprocess.run(
                    [*where, "qdisc", "replace", "dev", device, "root", *how],
                    capture_output=True,
                    check=False,
                )
                for where, device in ((["tc"], self._wire), (["tc", "-n", self.name], "eth0"))
            ]
            if all(each.returncode == 0 for each in both):
                return how[0]
        pytest.skip("LOUD: this kernel has neither netem nor tbf, so no wire can be made bad")


class Network:
    """A switch, at which this end is, too."""

    def __init__(self) -> None:
        run("mount", "-t", "tmpfs", "machines", "/run")
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", _SWITCH, "type", "bridge")
        run("ip", "address", "add", f"{HERE}/24", "dev", _SWITCH)
        run("ip", "link", "set", _SWITCH, "up")
        self._machines = 0

    def machine(self) -> Machine:
        """One more."""
        self._machines += 1
        made = Machine(f"m{self._machines}", self._machines)
        wire, inside = f"w{made.number}", ("ip", "-n", made.name)
        run("ip", "netns", "add", made.name)
        run("ip", "link", "add", wire, "type", "veth", "peer", "name", "eth0", "netns", made.name)
        run("ip", "link", "set", wire, "up")
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "address", "add", f"10.77.0.{made.number + 1}/24", "dev", "eth0")
        run(*inside, "link", "set", "eth0", "up")
        made.join()
        return made


def run(*command: str) -> None:
    """A program that has to succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"


def why_impossible() -> str | None:
    """Why there can be no such network here; None where there can."""
    if not Path("/proc/self/ns/net").exists():
        return "this kernel has no network namespaces"
    for command in (["ip", "-V"], ["tc", "-V"]):
        try:
            subprocess.run(command, capture_output=True, check=True)
        except FileNotFoundError:
            pytest.fail(f"{command[0]} is missing: install iproute2")
    tried = subprocess.run(
        ["unshare", "--net", "ip", "link", "add", "wire", "type", "veth"],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if tried.returncode == 0 else f"the kernel forbids it: {tried.stderr.strip()}"
