"""What a caller may say about a background run; apart, because what carries it out loads slowly."""

from backburner.model.order import ANY_TIME, Order
from backburner.model.values import value


@value
class RunOptions:
    """What a caller may say about a background run."""

    title: str | None = None
    max_runtime_s: float | None = None
    id: str | None = None
    wake: str = "on_terminal"
    order: Order = ANY_TIME
