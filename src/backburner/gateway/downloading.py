"""Fetching a file that a person sent, from where its platform keeps it.

The address came over the network: it is asked only at the origins that the adapter names, through
every redirect, so that neither a token nor a request goes anywhere else. Stops at the size that
was allowed. No error says the address: Telegram's contain the token.
"""

from collections.abc import Collection, Mapping

import aiohttp
import yarl

from backburner.gateway.platform import Later, Refused

_PIECE_BYTES = 64 * 1024
_MOST_REDIRECTS = 3
_TIMEOUT = aiohttp.ClientTimeout(total=300, sock_connect=20, sock_read=60)


async def download(
    address: str,
    most: int,
    *,
    origins: Collection[str],
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """The file, of at most so many bytes. `Later`, `Refused`."""
    try:
        async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
            for _ in range(_MOST_REDIRECTS + 1):
                url = _checked(address, origins)
                async with session.get(url, headers=headers, allow_redirects=False) as response:
                    if response.status in {301, 302, 303, 307, 308}:
                        address = str(url.join(yarl.URL(response.headers.get("Location", ""))))
                        continue
                    return await _body(response, most)
    except ValueError:
        raise Refused("the file has no usable address") from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise Later(f"the file could not be fetched: {type(error).__name__}") from None
    raise Refused("the file is not where the platform said")


def _checked(address: str, origins: Collection[str]) -> yarl.URL:
    url = yarl.URL(address)
    if url.origin() not in {yarl.URL(each).origin() for each in origins}:
        raise Refused("the file is not kept by the platform")
    return url


async def _body(response: aiohttp.ClientResponse, most: int) -> bytes:
    if response.status in {429, 500, 502, 503, 504}:
        raise Later(f"the file could not be fetched: status {response.status}")
    if not response.ok:
        raise Refused(f"the platform does not give the file: status {response.status}")
    held = bytearray()
    async for piece in response.content.iter_chunked(_PIECE_BYTES):
        held += piece
        if len(held) > most:
            raise Refused(f"the file is larger than {most} bytes")
    return bytes(held)
