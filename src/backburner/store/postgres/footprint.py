"""How many connections to the database a program has at the most: what its server has to let in.

The parts keep to the numbers here; `tests/deploy` holds the files of `deploy/` to the sums.
"""

READERS = 4
"""Threads of one open record that read at once; more wait. Each has a connection for what concerns
everybody, and one for what one owner may see."""
ENGINE = 4
"""Of the engine's worker: it fetches, says that it lives, and closes jobs, of which many may end at
once; more wait."""
READS = 2 * READERS
"""So many fewer it has where it reads over a pooler; there it has one for each thread."""
_EAR = 1
"""That listens, for all that one event loop has open."""
_WRITER = 1
_CLAIMER = 1
"""Of who carries out tasks."""
_SOLE = 1
"""Holds the lock by which it is the only one."""

_RECORD = _WRITER + READS
_STATION = _RECORD + _CLAIMER + ENGINE

PROGRAM = _EAR + _RECORD
"""One that starts tasks and reads of them, and carries out none."""
APPLICATION = _EAR + _STATION
"""One that has tools or agents of its own; so has `backburner serve`."""
GATEWAY = APPLICATION + _SOLE
WORKER = _EAR + 2 * _STATION
"""One for processes, and one beside it for tools and agents, whether it has any or not."""
