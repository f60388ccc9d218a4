"""Who watches a job: an attendant for each thing that its specification asks for."""

from collections.abc import Callable, Sequence

from backburner.model.home import AttemptFolder
from backburner.model.watching import ReadyKind, Watching
from backburner.runtime.attendant import Attendant
from backburner.runtime.watching.ledger import Ledger
from backburner.runtime.watching.output import OutputWatch
from backburner.runtime.watching.probing import Probing, probe_for
from backburner.runtime.watching.readiness import Readiness
from backburner.runtime.watching.scan import Scanner
from backburner.runtime.watching.silence import SilenceWatch
from backburner.work.log.pattern import LinePattern


def watchers(
    ledger: Ledger, folder: AttemptFolder, processes: Callable[[], Sequence[int]]
) -> list[Attendant]:
    """Nobody, for most jobs. ``processes`` answers those of the job."""
    if "watch" not in ledger.task.spec:
        return []
    task = ledger.task
    watching = Watching.from_spec(task.spec)
    paths = {"out": folder.log}
    if task.spec.get("separate_stderr"):
        paths["err"] = folder.stderr
    found: list[Attendant] = []
    readiness = Readiness(ledger) if watching.ready is not None else None
    if watching.patterns:
        scanner = Scanner(paths)
        if watching.ready is not None and watching.ready.kind is ReadyKind.OUTPUT:
            scanner.ready = LinePattern.compiled(watching.ready.value)
        if watching.match is not None:
            scanner.match = LinePattern.compiled(watching.match)
        found.append(OutputWatch(paths, scanner, ledger, readiness))
    if watching.silence_s is not None:
        found.append(SilenceWatch(tuple(paths.values()), watching.silence_s, ledger))
    if readiness is not None and watching.ready is not None:
        if watching.ready.kind is not ReadyKind.OUTPUT and not readiness.met:
            found.append(Probing(probe_for(watching.ready, task, processes), ledger, readiness))
        found.append(readiness)  # last: the others may find it ready at its very end
    return found
