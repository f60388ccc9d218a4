"""Short messages about background work, understood without a model (A10). English only.

`classify` says what a message asks for, `resolve` which task it means. See docs/intents.md.
"""

from backburner.tools.intents.reading import Intent, classify
from backburner.tools.intents.target import One, Several, Target, Unclear, resolve

__all__ = ["Intent", "One", "Several", "Target", "Unclear", "classify", "resolve"]
