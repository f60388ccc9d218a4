"""The OpenAPI document: made from the routes, with problems in the place of its errors."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from backburner.serve.models.problem import MEDIA_TYPE, Problem
from backburner.serve.routes.events import MODELS

_PROBLEM = {
    "description": "A problem: `code` is stable, `remedy` says what to do about it.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}

PUBLIC = frozenset({"/healthz", "/healthz/live", "/v1/login"})
"""What needs no token."""


def describe(app: FastAPI) -> None:
    """Give an application its document."""

    def made() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = made  # type: ignore[method-assign]  # the way that FastAPI documents


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        routes=app.routes,
        separate_input_output_schemas=False,
    )
    parts: dict[str, Any] = document.setdefault("components", {})
    schemas: dict[str, Any] = parts.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for model in (Problem, *MODELS):
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema
    parts["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "`backburner token create`"}
    }
    for path, methods in document["paths"].items():
        for operation in methods.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _PROBLEM
            if path not in PUBLIC:
                operation["security"] = [{"token": []}]
    return document
