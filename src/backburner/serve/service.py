"""What the routes share: the open Backburner, its tokens, and who reads along."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection

from backburner.runtime.tokens import TokenService
from backburner.serve.settings import Binding

if TYPE_CHECKING:
    from backburner.app import Backburner
    from backburner.serve.growth import Growth
    from backburner.serve.hub import Hub
    from backburner.serve.login import Logins
    from backburner.serve.measures import Measures


@dataclass(slots=True)
class Service:
    """One for each server."""

    backburner: "Backburner"
    tokens: TokenService
    binding: Binding
    hub: "Hub"
    growth: "Growth"
    logins: "Logins"
    measures: "Measures"
    closing: bool = False
    """It has been asked to end."""


def service_of(connection: HTTPConnection) -> Service:
    """That of the server which got this request."""
    found = connection.app.state.service
    assert isinstance(found, Service)
    return found
