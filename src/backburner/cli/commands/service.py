"""`backburner service`."""

import contextlib
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backburner.cli import exits, say
from backburner.cli.options import HomeOption, JsonOption, SessionOption
from backburner.cli.place import Place, place_in_folder
from backburner.model.errors import BackburnerError, NotFound

if TYPE_CHECKING:
    from backburner.keeper.unit import Unit

HELP = """Keep the keeper running, from boot on.

Without a service the keeper comes when there is work and leaves when there is none; after a
reboot the next command of yours tells how tasks ended. As a service (a unit of your systemd user
manager, no root needed) it is always there. Stopping the service leaves the tasks alone.
"""

_WHAT = "a service is for the keeper of a home folder"

EXAMPLES = (
    "backburner service install",
    "backburner service install --print",
    "backburner service status",
    "backburner service uninstall",
)


def install(
    *,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the unit, and change nothing.")
    ] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
    session: SessionOption = None,
) -> int:
    """Install and start the service.

    Writes a unit to ~/.config/systemd/user, enables and starts it; again, and it is brought up to
    date. A user's services run while the user is logged in, or always if the user lingers.
    """
    from backburner.cli import systemd
    from backburner.keeper.unit import Unit

    at = place_in_folder(home, session, _WHAT)
    unit = Unit.of(at.home.root)
    if only_print:
        if as_json:
            say.document({"unit": unit.name, "path": unit.path, "text": unit.text()})
        else:
            say.at_once(unit.text())
        return exits.DONE
    manager = systemd.user_manager()
    if not manager.worked:
        return _without_systemd(at, manager.complaint, as_json=as_json)
    _make_home(at)
    _put_in_place(unit)
    if as_json:
        say.document(_document(at, unit))
    else:
        say.data(f"{unit.name} is installed and started: {unit.path}")
        _explain_linger()
    return exits.DONE


def uninstall(
    *, as_json: JsonOption = False, home: HomeOption = None, session: SessionOption = None
) -> int:
    """Stop and remove the service; tasks go on."""
    from backburner.cli import systemd
    from backburner.keeper.unit import Unit
    from backburner.runtime.election import sitting_keeper
    from backburner.runtime.glance import Glance
    from backburner.runtime.succession import dismiss

    at = place_in_folder(home, session, _WHAT)
    unit = Unit.of(at.home.root)
    if not os.path.exists(unit.path):
        raise NotFound(
            f"there is no service for {at.home.root}", remedy="backburner service install makes one"
        )
    stopped = systemd.ask("systemctl", "--user", "disable", "--now", unit.name)
    if not stopped.worked and systemd.user_manager().worked:
        raise BackburnerError(
            f"{unit.name} could not be stopped: {stopped.complaint}",
            remedy=f"see: systemctl --user status {unit.name}",
        )
    os.unlink(unit.path)
    systemd.ask("systemctl", "--user", "daemon-reload")
    sitting = sitting_keeper(at.home)
    if sitting is not None and sitting.edition.stays:
        dismiss(at.home)  # a newer one, which took the place of the service's own
    with contextlib.suppress(BackburnerError), Glance(at.home) as glance:
        glance.see_to_keeper()  # one that leaves when it is not needed
    if as_json:
        say.document(_document(at, unit))
    else:
        say.data(f"{unit.name} is removed; tasks go on")
    return exits.DONE


def status(
    *, as_json: JsonOption = False, home: HomeOption = None, session: SessionOption = None
) -> int:
    """Show the service and the keeper.

    Exits with 1 where the service does not run.
    """
    from backburner.keeper.unit import Unit

    at = place_in_folder(home, session, _WHAT)
    unit = Unit.of(at.home.root)
    found = _document(at, unit)
    if as_json:
        say.document(found)
    else:
        there = "installed" if found["installed"] else "not installed"
        state = f", {found['enabled']}, {found['active']}" if found["installed"] else ""
        keeper = found["keeper"]
        stays = "stays" if keeper and keeper["stays"] else "leaves when there is nothing to do"
        shown = f"pid {keeper['pid']}, {keeper['version']}, {stays}" if keeper else "not running"
        say.data(f"service  {unit.name}: {there}{state}")
        say.data(f"unit     {unit.path}")
        say.data(f"linger   {'on' if found['linger'] else 'off'}")
        say.data(f"keeper   {shown}")
    return exits.DONE if found["active"] == "active" else exits.FAILED


VERBS = {"install": install, "uninstall": uninstall, "status": status}


def _without_systemd(at: Place, complaint: str, *, as_json: bool) -> int:
    from backburner.keeper.unit import cron_line

    say.message(f"there is no systemd user manager here, so nothing was changed: {complaint}")
    say.hint(
        "tasks need no service: the keeper comes with the first command. To have it from boot on, "
        "add the line below with: crontab -e; in a container, start its command beside the main "
        "program"
    )
    line = cron_line(at.home.root)
    if as_json:
        say.document({"installed": False, "reason": complaint, "cron": line})
    else:
        say.data(line)
    return exits.FAILED


def _make_home(at: Place) -> None:
    from backburner.store.sqlite.filesystem import refuse_network

    refuse_network(at.home.root)
    at.home.root.mkdir(mode=0o700, parents=True, exist_ok=True)


def _put_in_place(unit: "Unit") -> None:
    """Whole, or as it was before."""
    from backburner.cli import systemd

    before = _read(unit.path)
    text = unit.text()
    _write(unit.path, text)
    commands = [["daemon-reload"], ["enable", "--now", unit.name]]
    if before not in (None, text):
        commands.append(["restart", unit.name])
    for command in commands:
        answer = systemd.ask("systemctl", "--user", *command)
        if not answer.worked:
            if before is None:
                systemd.ask("systemctl", "--user", "disable", "--now", unit.name)
                os.unlink(unit.path)
            else:
                _write(unit.path, before)
            systemd.ask("systemctl", "--user", "daemon-reload")
            raise BackburnerError(
                f"systemctl --user {command[0]} failed, so nothing was changed: {answer.complaint}",
                remedy=f"see: journalctl --user -u {unit.name}",
            )


def _explain_linger() -> None:
    from backburner.cli import systemd

    user = systemd.user_name()
    if systemd.lingers(user):
        say.message(f"{user} lingers: it starts at boot, and goes on when you log out")
    else:
        say.message("it starts when you log in, and ends with your last session, tasks included")
        say.hint(f"to have it from boot on and after logout: loginctl enable-linger {user}")


def _document(at: Place, unit: "Unit") -> dict[str, Any]:
    from backburner.cli import systemd
    from backburner.runtime.edition import UNKNOWN
    from backburner.runtime.election import sitting_keeper

    sitting = sitting_keeper(at.home)
    keeper = None
    if sitting is not None:
        known = sitting.edition != UNKNOWN
        version = sitting.edition.version if known else "of an unknown version"
        keeper = {"pid": sitting.pid, "version": version, "stays": sitting.edition.stays}
    enabled = systemd.ask("systemctl", "--user", "is-enabled", unit.name).out.strip()
    active = systemd.ask("systemctl", "--user", "is-active", unit.name).out.strip()
    return {
        "unit": unit.name,
        "path": unit.path,
        "installed": os.path.exists(unit.path),
        "enabled": enabled or "unknown",
        "active": active or "unknown",
        "linger": systemd.lingers(systemd.user_name()),
        "keeper": keeper,
    }


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    new = f"{path}.new"
    with open(new, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    os.rename(new, path)
