"""What `doctor` looks at: whether this machine and this home can keep the promises.

Changes nothing that stays: what it makes to try things out is gone afterwards.
"""

from collections.abc import Iterator

from backburner.cli.checks import home, kernel, lifetime, parts
from backburner.cli.checks.finding import Finding, Level
from backburner.cli.place import Place

__all__ = ["Finding", "Level", "examine"]


def examine(at: Place) -> Iterator[Finding]:
    """Every check, in the order in which one builds on another."""
    yield parts.version(at)
    yield parts.python()
    if at.home.shared:
        from backburner.cli.checks.cluster import examine_cluster

        yield from examine_cluster(at)
        return
    yield parts.sqlite()
    folder = home.existing(at.home.root)
    usable = home.home(at.home.root, folder)
    yield usable
    yield home.file_system(folder)
    yield home.room(folder)
    record = home.record(at)
    yield record
    if Level.FAIL in {usable.level, record.level}:
        return  # what follows writes to the one and reads the other
    yield parts.keeper(at)
    yield parts.deliveries(at)
    yield lifetime.logout(at.home)
    yield lifetime.container(folder)
    yield lifetime.boot(at.home)
    yield kernel.processes()
    yield kernel.tried("log holes", folder, kernel.punches_holes)
    yield kernel.tried("log growth", folder, kernel.hears_of_growth)
    yield kernel.tried("wake-ups", folder, kernel.wakes)
    yield kernel.open_files()
