"""The application: routes, errors, and the layers around them."""

from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from backburner import __version__
from backburner.model.errors import BackburnerError
from backburner.serve import problems
from backburner.serve.access import Door
from backburner.serve.dashboard import Dashboard
from backburner.serve.description import PUBLIC, describe
from backburner.serve.guard import Guard
from backburner.serve.observe import Observe
from backburner.serve.routes import events, home, login, output, schedules, sessions, tasks
from backburner.serve.service import Service

ROUTERS = tuple(
    module.router for module in (tasks, output, events, sessions, schedules, home, login)
)


def api() -> FastAPI:
    """The routes alone, which is what the OpenAPI document is made from."""
    app = FastAPI(
        title="Backburner",
        version=__version__,
        summary="Background work for AI agents: tasks that survive, can be watched, and report.",
        # Its own would repeat ours, with the addresses and the texts of exceptions in them.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False},
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation,
        separate_input_output_schemas=False,
    )
    for router in ROUTERS:
        app.include_router(router)
    app.add_exception_handler(BackburnerError, problems.on_backburner_error)
    app.add_exception_handler(problems.Refused, problems.on_refused)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, problems.on_invalid)
    app.add_exception_handler(Exception, problems.on_unforeseen)
    describe(app)
    return app


def application(service: Service) -> ASGIApp:
    """All of it, for one server."""
    app = api()
    app.state.service = service
    door = Door(app, service, {*PUBLIC, "/openapi.json"})
    inner = problems.LastNet(Dashboard(door))
    return Observe(Guard(inner, service.binding), service.measures)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        # The framework names those of one route, and an address may have several.
        error.headers = {"Allow": ", ".join(_methods_at(request.scope["path"]))}
    return await problems.on_http_error(request, error)


def _methods_at(path: str) -> list[str]:
    routes = [route for router in ROUTERS for route in router.routes]
    fitting = [
        each for each in routes if isinstance(each, APIRoute) and each.path_regex.match(path)
    ]
    return sorted({method for route in fitting for method in route.methods or ()})


def _operation(route: APIRoute) -> str:
    return route.name
