"""Shell blocks that are meant for the background: `split` takes the marker off (A1)."""

from backburner.tools.markers import MARKERS, Split, split

__all__ = ["MARKERS", "Split", "split"]
