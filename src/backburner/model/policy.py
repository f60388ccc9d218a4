"""What a caller may do: one table of modes and roles, which every handle asks before it acts."""

from enum import StrEnum

from backburner.model.errors import NotAllowed, UsageError
from backburner.model.values import value

DRY_RUN = "[dry-run]"
"""How everything begins that a dry run says."""


class Mode(StrEnum):
    """How a session works at present."""

    NORMAL = "normal"
    PLAN = "plan"
    """It looks and thinks, and changes nothing."""
    DRY_RUN = "dry_run"
    """It says what it would change, and changes nothing."""


class Role(StrEnum):
    """Who acts in a session."""

    ADMIN = "admin"
    """Ends tasks of other sessions of the same owner without asking them."""
    USER = "user"
    VIEWER = "viewer"
    """Looks, and takes nothing from the inbox of the others."""


class Action(StrEnum):
    """Everything that a handle can do, by what it changes."""

    READ = "reading"
    """Listing, reading, waiting."""
    TAKE = "taking signals"
    """What is acknowledged is not told to anybody else."""
    WISH = "changing what the session is told"
    START = "starting work"
    STOP = "stopping work"
    STOP_OTHERS = "stopping work of another session unasked"
    SEND = "sending to a task"
    SCHEDULE = "scheduling"
    END = "ending the session"


_LOOKING = frozenset({Action.READ})
_PLANNING = frozenset({Action.READ, Action.TAKE})
_WORKING = frozenset(Action) - {Action.STOP_OTHERS}

ALLOWED: dict[Mode | Role, frozenset[Action]] = {
    Mode.NORMAL: frozenset(Action),
    Mode.PLAN: _PLANNING,
    # In a dry run the rest is played through; see `Policy.plays`.
    Mode.DRY_RUN: frozenset(Action),
    Role.ADMIN: frozenset(Action),
    Role.USER: _WORKING,
    Role.VIEWER: _LOOKING,
}
"""An action needs both: the mode and the role."""

_WHY: dict[Mode | Role, str] = {
    Mode.PLAN: "the session is in plan mode, which changes nothing",
    Role.USER: "only an admin may",
    Role.VIEWER: "a viewer only looks",
}


@value
class Policy:
    """What the holder of a handle may do."""

    mode: Mode = Mode.NORMAL
    role: Role = Role.USER

    @classmethod
    def of(cls, mode: str, role: str) -> "Policy":
        """By their names; UsageError names those that there are."""
        if mode not in list(Mode):
            raise UsageError(f"{mode!r} is no mode", remedy=f"choose from {', '.join(Mode)}")
        if role not in list(Role):
            raise UsageError(f"{role!r} is no role", remedy=f"choose from {', '.join(Role)}")
        policy = cls(Mode(mode), Role(role))
        return FREE if policy == FREE else policy

    def allows(self, action: Action) -> bool:
        """Whether the table does."""
        return action in ALLOWED[self.mode] and action in ALLOWED[self.role]

    def check(self, action: Action) -> None:
        """NotAllowed says why not, and what is."""
        for part in (self.role, self.mode):
            if action not in ALLOWED[part]:
                rest = " and ".join(each.value for each in Action if self.allows(each))
                raise NotAllowed(
                    f"{action.value} is not allowed here: {_WHY[part]}",
                    remedy=f"{rest} {'is' if self.allowed_count == 1 else 'are'} allowed",
                )

    @property
    def allowed_count(self) -> int:
        """How many kinds of actions are."""
        return sum(map(self.allows, Action))

    def plays(self, action: Action) -> bool:
        """Whether the action is only said, and not done."""
        return self.mode is Mode.DRY_RUN and action not in _LOOKING


FREE = Policy()
