"""An error, as RFC 9457 has it."""

from pydantic import Field

from backburner.serve.models.base import Document, example

MEDIA_TYPE = "application/problem+json"


class Problem(Document):
    """Why a request was not carried out, and what can be done about it."""

    model_config = example(
        type="urn:backburner:problem:not_found",
        title="Not Found",
        status=404,
        detail="there is no such thing for this token",
        code="not_found",
        remedy="check the address and the id",
    )

    type: str = Field(description="A name for this kind of problem: the code, as a URN.")
    title: str = Field(description="The HTTP status in words.")
    status: int = Field(ge=400, le=599)
    detail: str = Field(description="What went wrong this time.")
    code: str = Field(description="Stable, for programs.")
    remedy: str = Field(description="What to do about it; empty where nothing helps.")
