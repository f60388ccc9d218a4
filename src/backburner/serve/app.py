"""The application: routes, errors, and the layers around them."""

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from backburner import __version__
from backburner.model.errors import BackburnerError
from backburner.serve import problems
from backburner.serve.dashboard import Dashboard
from backburner.serve.description import describe
from backburner.serve.guard import Guard
from backburner.serve.observe import Observe
from backburner.serve.routes import events, home, login, output, schedules, sessions, tasks
from backburner.serve.service import Service


def api() -> FastAPI:
    """The routes alone, which is what the OpenAPI document is made from."""
    app = FastAPI(
        title="Backburner",
        version=__version__,
        summary="Background work for AI agents: tasks that survive, can be watched, and report.",
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation,
        separate_input_output_schemas=False,
    )
    for module in (tasks, output, events, sessions, schedules, home, login):
        app.include_router(module.router)
    app.add_exception_handler(BackburnerError, problems.on_backburner_error)
    app.add_exception_handler(problems.Refused, problems.on_refused)
    app.add_exception_handler(HTTPException, problems.on_http_error)
    app.add_exception_handler(RequestValidationError, problems.on_invalid)
    app.add_exception_handler(Exception, problems.on_unforeseen)
    describe(app)
    return app


def application(service: Service) -> ASGIApp:
    """All of it, for one server."""
    app = api()
    app.state.service = service
    inner = problems.LastNet(Dashboard(app))
    return Observe(Guard(inner, service.binding), service.measures)


def _operation(route: APIRoute) -> str:
    return route.name


def routes_of(app: FastAPI) -> list[Any]:
    """The routes that the document describes."""
    return [route for route in app.routes if isinstance(route, APIRoute)]
