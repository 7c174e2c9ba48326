"""Viewer server with access control and security headers."""

import hmac
import ipaddress
import logging
import re
import secrets
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from chasles.errors import InputError, ModelError
from chasles.view.incoming import LARGEST, Inputs, objection
from chasles.view.policy import ADDED, NOTHING, hashes, policy

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

LOCAL = ("localhost", "127.0.0.1", "[::1]")
"""Host names of the local machine."""

ANYWHERE = ("", "0.0.0.0", "::")
"""Addresses that stand for all network interfaces of this machine."""

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the URL contains the token
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Headers added to every response, in addition to the content security policy."""

FRAMES = ("http://localhost:*", "http://127.0.0.1:*", "https://localhost:*", "vscode-webview:")
"""Origins of notebooks that may embed the page. A notebook also needs the token."""


def served() -> Path:
    """Return the path to the self-contained HTML page that viser serves."""
    import viser

    return Path(viser.__file__).parent / "client" / "build" / "index.html"


_HOST = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?")
_starting = Lock()


@dataclass(frozen=True)
class Door:
    """Access control for one viewer server.

    The path of a request must contain the token. The `Host` header must name this machine or a host
    in `allow`. The `Origin` header, if any, must name the same host or a host in `allow`. Other
    requests are rejected. A page from another origin can guess the port, but not the token.
    Checking the `Host` header prevents DNS rebinding.
    """

    host: str
    allow: tuple[str, ...] = ()
    token: str = field(default_factory=lambda: secrets.token_urlsafe(16))

    def url(self, port: int) -> str:
        """Return the URL of the page, including the token."""
        host = LOCAL[1] if self.host in ANYWHERE else self.host
        return f"http://{_bracketed(host)}:{port}/{self.token}/"

    def objection(self, request: "Request", port: int) -> str:
        """Return the reason for rejecting a request, or "" to accept it."""
        hosts = request.headers.get_all("Host")
        if len(hosts) != 1 or not self.knows(hosts[0], port):
            return "This host is not allowed; list further hosts in `allow`."
        origins = request.headers.get_all("Origin")
        if len(origins) > 1 or not all(self._same(origin, hosts[0]) for origin in origins):
            return "Pages of other origins are rejected; list further hosts in `allow`."
        token = _steps(request)[0].encode("utf-8", "replace")
        if not hmac.compare_digest(token, self.token.encode()):
            return "The address has no valid token; open the address that chasles printed."
        return ""

    def knows(self, host: str, port: int) -> bool:
        """Return True if a `Host` header names this server or an allowed host."""
        name, number = _parted(host)
        if self._allowed(host):
            return True
        own = (*LOCAL, _bracketed(self.host).lower())
        if self.host in ANYWHERE:  # numeric addresses are safe from DNS rebinding
            own = (*LOCAL, socket.gethostname().lower())
            return number == port and (name in own or _is_address(name))
        return number == port and name in own

    def _same(self, origin: str, host: str) -> bool:
        """Return True if an `Origin` header names the requested host or an allowed host."""
        found = urlsplit(origin)
        if found.scheme not in ("http", "https") or f"{found.scheme}://{found.netloc}" != origin:
            return False
        return found.netloc.lower() == host.lower() or self._allowed(found.netloc)

    def _allowed(self, host: str) -> bool:
        """Return True if `allow` contains a host, with or without its port."""
        return host.lower() in self.allow or _parted(host)[0] in self.allow

    def policy(self, host: str) -> str:
        """Return the content security policy for a page served from `host`."""
        also = [f"{scheme}://{name}" for name in self.allow for scheme in ("http", "https")]
        return policy(hashes(served()), host, (*FRAMES, *also))

    def inside(self, request: "Request") -> "Request":
        """Return the request to pass on to viser, without the token and without compression."""
        headers = request.headers.copy()
        headers.pop("Accept-Encoding", "")  # `ADDED` is appended to the response
        return replace(request, path=f"/{_steps(request)[1]}", headers=headers)


def _steps(request: "Request") -> tuple[str, str]:
    """Split a request's path into its first segment (the token) and the rest."""
    first, _, rest = request.path.partition("?")[0].removeprefix("/").partition("/")
    return first, rest


def checked(allow: Sequence[str]) -> tuple[str, ...]:
    """Return the allowed hosts in lower case; raise an error for an invalid host."""
    hosts = (allow,) if isinstance(allow, str) else tuple(allow)
    for host in hosts:
        if not isinstance(host, str) or not _HOST.fullmatch(host):
            problem = f"{host!r} in `allow` is not a valid host"
            remedy = "pass the host from the browser's address bar, such as hub.example.org:8000"
            raise InputError("E-VIEW-006", problem, remedy, part="show")
    return tuple(host.lower() for host in hosts)


def _parted(host: str) -> tuple[str, int]:
    """Split a host into its lower-case name and port (default: 80), or ("", 0) if invalid."""
    found = _HOST.fullmatch(host)
    return (found[1].lower(), int(found[2] or 80)) if found else ("", 0)


def _bracketed(host: str) -> str:
    """Format a host for a URL, with an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


# Server with access control ----------------------------------------------------------------------


def open_server(door: Door, port: int) -> Any:
    """Start a viser server that checks every request and message."""
    import viser
    import websockets.asyncio.server

    quiet = logging.getLogger("chasles.view")
    quiet.propagate = False  # do not log rejected requests
    quiet.addHandler(logging.NullHandler())
    hashes(served())
    inputs = Inputs()
    started = []

    def serve(*arguments: Any, **options: Any) -> Any:
        started.append(True)
        options |= {"create_connection": _connection(door, inputs), "logger": quiet}
        options |= {"max_size": LARGEST}
        return websockets.asyncio.server.serve(*arguments, **options)

    with _starting, _replaced(serve):
        server = viser.ViserServer(host=door.host, port=port, verbose=False)
    known = getattr(server.gui, "_gui_input_handle_from_uuid", None)
    if not started or known is None:
        server.stop()
        problem = f"viser {viser.__version__} is not supported"
        raise ModelError("E-VIEW-007", problem, "run pip install 'chasles[view]'")
    inputs.known = known
    return server


def _connection(door: Door, inputs: Inputs) -> "type[ServerConnection]":
    """Return a connection class that checks all requests and messages."""
    from websockets.asyncio.server import ServerConnection

    class Connection(ServerConnection):
        async def handshake(
            self, process_request: Any = None, process_response: Any = None, server_header: Any = ""
        ) -> None:
            def asked(connection: "ServerConnection", request: "Request") -> "Response | None":
                why = door.objection(request, self.local_address[1])
                if why:
                    return connection.respond(403, f"{why}\n")
                answer: Response | None = process_request(connection, door.inside(request))
                return answer

            def answered(_: "ServerConnection", request: "Request", response: "Response") -> None:
                served = response.status_code == 200
                rules = door.policy(request.headers["Host"]) if served else NOTHING
                if served:
                    response.body += ADDED
                    del response.headers["Content-Length"]
                    response.headers["Content-Length"] = str(len(response.body))
                response.headers.update(HEADERS | {"Content-Security-Policy": rules})

            await super().handshake(asked, answered, None)

        async def recv(self, decode: bool | None = None) -> Any:
            letter = await super().recv(decode)
            why = objection(letter, inputs)
            if not why:
                return letter
            await self.close(1008, why.encode()[:120].decode(errors="ignore"))
            return await super().recv(decode)  # raises ConnectionClosed

    return Connection


class _Over:
    """Proxy for a module: some attributes are replaced, and all others are forwarded."""

    def __init__(self, under: Any, **names: Any) -> None:
        self.__dict__.update(names, _under=under)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._under, name)


@contextmanager
def _replaced(serve: Any) -> Iterator[None]:
    """Replace, within this context, the websockets function that viser uses to start a server."""
    from viser.infra import _infra as infrastructure

    before = infrastructure.websockets
    server = _Over(before.asyncio.server, serve=serve)
    infrastructure.websockets = _Over(before, asyncio=_Over(before.asyncio, server=server))
    try:
        yield
    finally:
        infrastructure.websockets = before
