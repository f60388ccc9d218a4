"""Where the server listens and how much it takes on; each default has its reason."""

from dataclasses import field

from backburner.model.address import LOOPBACK, is_loopback
from backburner.model.errors import NotAllowed, UsageError
from backburner.model.values import value

DEFAULT_PORT = 8642


@value
class Load:
    """What one server takes on at once.

    A reader of events costs about 35 KB of memory: `make bench ARGS=streams`.
    """

    body_bytes: int = 4 * 1024 * 1024
    """A request: a result or an answer is 1 MiB at the most, a command too."""
    body_s: float = 30.0
    """For a body to come: who sends none must not keep a place."""
    requests: int = 200
    """Carried out at the same time, streams not counted."""
    streams: int = 4096
    """Readers of events."""
    streams_per_token: int = 2048
    per_second: float = 100.0
    """Requests of one token; a page of the dashboard makes about ten."""
    burst: int = 500
    guesses_per_minute: float = 30.0
    """Wrong tokens and codes from one address. None can be guessed: this keeps the log short."""
    event_backlog: int = 1000
    """Events that may wait for one slow reader before it is dropped."""
    replayed: int = 10_000
    """Events that a reader who was away is given again; beyond that it has to look anew."""
    keep_alive_s: float = 15.0
    """Proxies cut connections that are silent for a minute."""
    stalled_s: float = 30.0
    """A reader that takes nothing at all for so long is cut off."""


@value
class Binding:
    """Where it listens, and who may say which name it has."""

    host: str = LOOPBACK
    port: int = DEFAULT_PORT
    tls_cert: str | None = None
    tls_key: str | None = None
    behind_proxy: bool = False
    names: tuple[str, ...] = ()
    """Names that requests may be addressed to, beside addresses and localhost."""
    load: Load = field(default_factory=Load)

    def __post_init__(self) -> None:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise UsageError(
                "TLS needs a certificate and its key", remedy="give --tls-cert and --tls-key"
            )
        if not is_loopback(self.host) and not self.tls and not self.behind_proxy:
            raise NotAllowed(
                f"{self.host} can be reached from other machines, and tokens would go over the"
                " network unencrypted",
                remedy="give --tls-cert and --tls-key, or --behind-proxy if a proxy does TLS",
            )

    @property
    def tls(self) -> bool:
        """Whether it speaks TLS itself."""
        return self.tls_cert is not None

    @property
    def secure(self) -> bool:
        """Whether browsers reach it through TLS."""
        return self.tls or self.behind_proxy
