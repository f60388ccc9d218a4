"""`python -m bench.peers.programs NAME COUNT`: one round of a peer, which is told in JSON.

PEER_PLACE says where the peer keeps its record. The module is imported by its name, as the peer's
own worker does: as `__main__` its tasks would have other names here than there.
"""

import importlib
import sys

importlib.import_module(f"bench.peers.programs.{sys.argv[1]}").main(int(sys.argv[2]))
