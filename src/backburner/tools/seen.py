"""What a model sees of a tool: its name, its description, its parameters, and what comes back."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from backburner.model.values import value

Form = Literal["openai", "anthropic", "mcp"]


@value
class Parameter:
    """One argument."""

    name: str
    type: str
    """JSON type: string, number, integer, boolean, object."""
    description: str = ""
    required: bool = False
    choices: Sequence[str] = ()

    def schema(self, *, strict: bool) -> dict[str, Any]:
        """As JSON schema. In strict mode all are there, and what is optional may be null."""
        # A strict schema knows no objects of any shape: they come as JSON in a text.
        written = strict and self.type == "object"
        plain = "string" if written else self.type
        nullable = strict and not self.required
        schema: dict[str, Any] = {"type": [plain, "null"] if nullable else plain}
        if self.choices:
            schema["enum"] = [*self.choices, *([None] if nullable else [])]
        described = f"{self.description} A JSON object, as text." if written else self.description
        if described:
            schema["description"] = described.strip()
        return schema


@value
class Hints:
    """What a client may know before it calls."""

    readonly: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False
    """It may reach whatever there is outside of our record: a command can do anything."""


ANYTHING = Hints(destructive=True, open_world=True)
"""Of a tool that starts work, or talks to it: what that does nobody knows beforehand."""


@value
class Answer:
    """What one call gives: a text for the model, and the same as data for programs."""

    text: str
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    is_error: bool = False


Handler = Callable[[dict[str, Any]], Awaitable[Answer]]


@value
class Offer:
    """One tool that is offered to a model."""

    name: str
    description: str
    parameters: Sequence[Parameter]
    handler: Handler
    hints: Hints = Hints()
    parallel: bool = False
    """It is safe to call several at once."""

    def schema(self, *, strict: bool = False) -> dict[str, Any]:
        """Of its arguments."""
        required = [each.name for each in self.parameters if strict or each.required]
        return {
            "type": "object",
            "properties": {each.name: each.schema(strict=strict) for each in self.parameters},
            "required": required,
            "additionalProperties": False,
        }

    def document(self, form: Form) -> dict[str, Any]:
        """As the interface of a model takes it."""
        match form:
            case "openai":
                return {
                    "type": "function",
                    "function": {
                        "name": self.name,
                        "description": self.description,
                        "parameters": self.schema(strict=True),
                        "strict": True,
                    },
                }
            case "anthropic":
                return {
                    "name": self.name,
                    "description": self.description,
                    "input_schema": self.schema(),
                }
            case "mcp":
                return {
                    "name": self.name,
                    "description": self.description,
                    "inputSchema": self.schema(),
                    "annotations": {
                        "readOnlyHint": self.hints.readonly,
                        "destructiveHint": self.hints.destructive,
                        "idempotentHint": self.hints.idempotent,
                        "openWorldHint": self.hints.open_world,
                    },
                }


def by_name(offers: Sequence[Offer]) -> Mapping[str, Offer]:
    """The same, to look them up."""
    return {offer.name: offer for offer in offers}
