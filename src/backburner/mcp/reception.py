"""What stands before every request: the low-level server, and a guard on what may be told."""

import logging
import secrets
import traceback
from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel import NotificationOptions, Server
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, ServerCapabilities
from pydantic import ValidationError

from backburner.mcp import extension
from backburner.model.errors import SPELLINGS, BackburnerError
from backburner.model.redaction import redact_text

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.models import InitializationOptions

_log = logging.getLogger("backburner.mcp")


class Reception(Server[Any]):
    """The low-level server, honest about what the version of the protocol at hand has."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,  # noqa: ARG002 - none at a handshake
    ) -> "InitializationOptions":
        """What a client of an earlier version is told: it has no extensions."""
        made = super().create_initialization_options(
            notification_options, experimental_capabilities, {}
        )
        made.capabilities.extensions = None
        return made

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> ServerCapabilities:
        """What it has. Its tools do not change, so nobody need listen for that."""
        made = super().get_capabilities(
            notification_options,
            experimental_capabilities,
            extensions,
            protocol_version=protocol_version,
        )
        if made.tools is not None:
            made.tools.list_changed = False
        return made


async def era_gate(ctx: "ServerRequestContext[Any, Any]", call_next: "CallNext") -> "HandlerResult":
    """Before 2026-07-28 the methods of the extension do not exist."""
    extension.refuse_before_its_time(ctx)
    return await call_next(ctx)


async def guard(ctx: "ServerRequestContext[Any, Any]", call_next: "CallNext") -> "HandlerResult":
    """Between every request and the client: an error says what may be told, and no more."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except BackburnerError as error:
        code = SPELLINGS[error.code].mcp_code
        raise MCPError(code, redact_text(str(error)), {"code": error.code}) from None
    except Exception as error:  # noqa: BLE001 - whatever it is, the client is not shown it
        reference = f"ie_{secrets.token_hex(6)}"
        chain = redact_text("".join(traceback.format_exception(error)))
        _log.error("%s: internal error %s\n%s", ctx.method, reference, chain)
        text = f"an internal error happened (reference {reference})"
        raise MCPError(INTERNAL_ERROR, text) from None
