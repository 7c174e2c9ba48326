"""Access to a view's page, and checks of the page's messages, without a browser."""

import math
import random
import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from support import raises

import chasles

pytest.importorskip("viser", reason="the viewer's packages are not installed")

import msgspec
import viser
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from chasles.view import Viewer, door, show
from chasles.view.door import Door, checked
from chasles.view.incoming import FIELDS, LARGEST, Inputs, objection


@pytest.fixture(scope="module")
def viewer() -> Iterator[Viewer]:
    with show(chasles.robots.four_bar(), port=0) as made:
        yield made


@dataclass(frozen=True)
class Asked:
    """HTTP request with path, host and origin; PORT and TOKEN stand for those of the view."""

    path: str = "/TOKEN/"
    host: str = "127.0.0.1:PORT"
    origin: str | None = None

    def of(self, viewer: Viewer) -> tuple[int, str, dict[str, str]]:
        """Return the port, path and headers."""
        port, token = viewer.server.get_port(), viewer.url.split("/")[3]
        headers = {"Host": self.host} | ({} if self.origin is None else {"Origin": self.origin})
        told = {k: v.replace("PORT", str(port)) for k, v in headers.items()}
        return port, self.path.replace("TOKEN", token), told


SERVED = (
    Asked(),
    Asked("/TOKEN"),
    Asked("/TOKEN/?websocket=ws://127.0.0.1"),
    Asked(host="localhost:PORT"),
    Asked(host="LOCALHOST:PORT", origin="http://localhost:PORT"),
    Asked(host="[::1]:PORT"),
    Asked(origin="http://127.0.0.1:PORT"),
)
REFUSED = (
    Asked("/"),
    Asked("/index.html"),
    Asked("/?token=TOKEN"),
    Asked("/x/TOKEN/"),
    Asked("/TOKENx/"),
    Asked("//TOKEN/"),
    Asked(host="rebind.test:PORT"),
    Asked(host="127.0.0.1"),
    Asked(host="127.0.0.1:1"),
    Asked(host="127.0.0.1:PORT.rebind.test"),
    Asked(host="127.0.0.2:PORT"),
    Asked(host=""),
    Asked(origin="null"),
    Asked(origin=""),
    Asked(origin="http://rebind.test"),
    Asked(origin="http://127.0.0.1:1"),
    Asked(origin="http://localhost:PORT"),  # not the origin of the request
    Asked(origin="http://127.0.0.1:PORT@rebind.test"),
    Asked(origin="http://127.0.0.1:PORT/"),
    Asked(origin="file://127.0.0.1:PORT"),
)


class Answer(NamedTuple):
    """Response of a server."""

    status: int
    headers: Message
    body: bytes


def page(viewer: Viewer, asked: Asked, *more: tuple[str, str]) -> Answer:
    """Return the response to a request for the page, with additional headers."""
    port, path, headers = asked.of(viewer)
    with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as line:
        line.putrequest("GET", path, skip_host=True)
        for name, value in [*headers.items(), *more]:
            line.putheader(name, value)
        line.endheaders()
        with line.getresponse() as answer:
            return Answer(answer.status, answer.headers, answer.read())


@contextmanager
def linked(viewer: Viewer, asked: Asked = SERVED[0]) -> Iterator[Any]:
    """Open a WebSocket to the view, as its page does."""
    port, path, headers = asked.of(viewer)
    url, version = f"ws://{headers['Host']}{path}", [f"viser-v{viser.__version__}"]
    origin: Any = headers.get("Origin")
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as line,
        connect(url, sock=line, subprotocols=version, origin=origin) as link,  # type: ignore[arg-type]
    ):
        yield link


@pytest.mark.parametrize("asked", SERVED)
def test_the_page_and_its_socket_are_served(viewer: Viewer, asked: Asked) -> None:
    answer = page(viewer, asked)
    assert answer.status == 200
    assert b"<script" in answer.body
    with linked(viewer, asked) as link:
        assert len(link.recv(timeout=30)) > 100  # the scene


@pytest.mark.parametrize("asked", REFUSED)
def test_strangers_are_refused(viewer: Viewer, asked: Asked) -> None:
    answer = page(viewer, asked)
    assert answer.status == 403
    assert len(answer.body) < 200
    if asked.host and not asked.host.endswith(".test"):  # addresses that a client can have
        with pytest.raises(InvalidStatus, match="403"), linked(viewer, asked):
            pass


def test_two_hosts_or_origins_are_refused(viewer: Viewer) -> None:
    asked = Asked(origin="http://127.0.0.1:PORT")
    for twice in asked.of(viewer)[2].items():
        assert page(viewer, asked, twice).status == 403


def test_every_view_has_its_own_token(viewer: Viewer) -> None:
    with show(chasles.robots.planar(1), port=0) as other:
        assert other.url.split("/")[3] != viewer.url.split("/")[3]
        assert page(other, Asked("/" + viewer.url.split("/")[3] + "/")).status == 403


def test_headers_of_every_answer(viewer: Viewer) -> None:
    for asked in (Asked(), Asked("/"), Asked("/TOKEN/nothing")):
        answer = page(viewer, asked)
        assert answer.headers.get("X-Content-Type-Options") == "nosniff"
        assert answer.headers.get("Referrer-Policy") == "no-referrer"
        assert answer.headers.get("Server") is None
        found = answer.headers.get("Content-Security-Policy")
        assert found is not None
        rules = dict(rule.split(" ", 1) for rule in found.split("; "))
        assert rules["default-src"] == "'none'"
        assert "unsafe" not in rules.get("script-src", "").replace("'wasm-unsafe-eval'", "")
        assert "*" not in "".join(v for k, v in rules.items() if k != "frame-ancestors")


def test_no_text_becomes_markup() -> None:
    """These elements of viser render HTML and run scripts; inputs and labels are text.

    A test in a browser shows that labels of graphs (uplot) are text.
    """
    markup = re.compile(r"\.add_(markdown|html|plotly|image|3d_gui_container)|icon_html|modal")
    for path in Path(door.__file__).parent.glob("*.py"):
        assert not markup.search(path.read_text("utf-8")), path


def test_a_notebook_keeps_the_token_to_itself(viewer: Viewer) -> None:
    frame = viewer._repr_html_()
    assert 'referrerpolicy="no-referrer"' in frame
    assert "allow-same-origin" in frame  # otherwise, its origin would be null
    assert "allow-top-navigation" not in frame


# Hosts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "host", "known"),
    [
        (Door("127.0.0.1"), "localhost:80", True),
        (Door("127.0.0.1"), "localhost", True),
        (Door("192.0.2.7"), "192.0.2.7:80", True),
        (Door("192.0.2.7"), "192.0.2.8:80", False),
        (Door("0.0.0.0"), "192.0.2.8:80", True),  # only this machine's addresses reach it
        (Door("0.0.0.0"), "[2001:db8::1]:80", True),
        (Door("0.0.0.0"), "[fe80::1%x; script-src *]:80", False),
        (Door("0.0.0.0"), "rebind.test:80", False),
        (Door("::1"), "[::1]:80", True),
        (Door("127.0.0.1", ("hub.test",)), "hub.test:8000", True),
        (Door("127.0.0.1", ("hub.test",)), "x.hub.test:8000", False),
        (Door("127.0.0.1", ("hub.test:8000",)), "HUB.test:8000", True),
        (Door("127.0.0.1", ("hub.test:8000",)), "hub.test:8001", False),
        (Door("127.0.0.1", ("hub.test",)), "hub.test; script-src *", False),
    ],
)
def test_hosts_that_are_known(made: Door, host: str, known: bool) -> None:
    assert made.knows(host, 80) is known


def test_an_allowed_proxy_is_served() -> None:
    with show(chasles.robots.planar(1), port=0, allow=["Hub.test"]) as viewer:
        proxied = Asked(host="hub.test", origin="https://hub.test")
        assert page(viewer, proxied).status == 200
        assert page(viewer, Asked(origin="https://hub.test")).status == 200  # a proxy rewrote Host
        assert page(viewer, Asked(origin="https://rebind.test")).status == 403
        policy = page(viewer, proxied).headers["Content-Security-Policy"]
        assert "wss://hub.test " in policy
        assert re.search(r"frame-ancestors [^;]*https://hub\.test", policy)


@pytest.mark.parametrize("host", ["*", "http://hub.test", "hub.test/x", "", "a b", 7, "a;b"])
def test_hosts_that_cannot_be_allowed(host: Any) -> None:
    with raises("E-VIEW-006", "hub.example.org"):
        checked([host])


def test_a_viser_that_is_not_known_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An unknown version of viser may skip checks, or its page may contain unknown scripts."""
    with monkeypatch.context() as changed:
        changed.setattr(door, "_replaced", nullcontext)
        with raises("E-VIEW-007", viser.__version__):
            show(chasles.robots.planar(1), port=0)
    page = tmp_path / "index.html"
    page.write_text("<script>alert(1)</script>")
    monkeypatch.setattr(door, "served", lambda: page)
    with raises("E-VIEW-008", viser.__version__):
        show(chasles.robots.planar(1), port=0)


def test_an_address_of_version_6() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with show(chasles.robots.planar(1), host="::1", port=0) as viewer:
        assert viewer.url.startswith("http://[::1]:")


# Messages --------------------------------------------------------------------------------------


def slider(viewer: Viewer, k: int) -> str:
    """Return the identifier of a slider in the page."""
    return str(viewer.panels[0].sliders[k]._impl.uuid)


CAMERA = {
    "type": "ViewerCameraMessage",
    "wxyz": [1.0, 0.0, 0.0, 0.0],
    "position": [1.0, 1.0, 1.0],
    "fov": 1.0,
    "near": 0.1,
    "far": 100.0,
    "image_height": 480,
    "image_width": 720,
    "look_at": [0.0, 0.0, 0.0],
    "up_direction": [0.0, 0.0, 1.0],
}


def value(uuid: str, value: Any, **more: Any) -> dict[str, Any]:
    return {"type": "GuiUpdateMessage", "uuid": uuid, "updates": {"value": value} | more}


def hung_up(viewer: Viewer, letter: dict[str, Any] | bytes | str) -> str:
    """Send a valid message and a given one; return the reason with which the view disconnects."""
    raw = letter if isinstance(letter, bytes | str) else msgspec.msgpack.encode(letter)
    with linked(viewer) as link:
        link.send(msgspec.msgpack.encode(CAMERA))
        link.send(raw)
        with pytest.raises(ConnectionClosed) as closed:
            list(link)  # the scene, until the view disconnects
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code in (1008, 1009)
    return closed.value.rcvd.reason


def test_values_that_are_refused(viewer: Viewer) -> None:
    before = np.array(viewer.figures[0].q)
    crank, dependent = slider(viewer, 0), slider(viewer, 1)
    box = viewer.panels[0].message._impl.uuid
    for bad in (math.nan, math.inf, "0.5", True, None, [0.5], {"x": 1.0}):
        assert "cannot have this value" in hung_up(viewer, value(crank, bad))
    assert "cannot be changed" in hung_up(viewer, value(dependent, 0.5))
    assert "unknown input" in hung_up(viewer, value("joint7", 0.5))
    assert "unknown input" in hung_up(viewer, value(box, "a text"))
    assert "only the value" in hung_up(viewer, value(crank, 0.5, max=1e9))
    assert "only the value" in hung_up(viewer, value(crank, 0.5, update_cb=[]))
    np.testing.assert_array_equal(viewer.figures[0].q, before)
    assert viewer.panels[0].sliders[0].max < 4.0


@pytest.mark.parametrize(
    "letter",
    [
        b"",
        b"\xc1",
        "a text",
        b"\x91" * 5000,
        {"kind": "GuiUpdateMessage"},
        {"type": 7},
        {"type": "ShareUrlRequest"},
        {"type": "RunJavascriptMessage", "source": "1"},
        {"type": "ResetGuiMessage"},
        {"type": "x" * 100_000},
        {"type": "GuiUpdateMessage"},
        {"type": "GuiUpdateMessage", "uuid": 7, "updates": {}},
        CAMERA | {"position": [0.0, math.nan, 0.0]},
        CAMERA | {"position": [0.0, 0.0]},
        CAMERA | {"position": "abc"},
        CAMERA | {"image_width": 1e9},
        CAMERA | {"fov": None},
        CAMERA | {"owner": "x"},
        bytes(LARGEST + 1),
    ],
    ids=range(19),
)
def test_messages_that_are_refused(viewer: Viewer, letter: Any) -> None:
    assert len(hung_up(viewer, letter).encode()) <= 123


def test_a_good_message_moves_the_joint_and_a_far_one_moves_it_to_the_end(viewer: Viewer) -> None:
    figure, panel = viewer.figures[0], viewer.panels[0]
    with linked(viewer) as link:
        for wanted, reached in ((0.25, 0.25), (1e300, panel.freedoms[0].upper)):
            link.send(msgspec.msgpack.encode(CAMERA))
            link.send(msgspec.msgpack.encode(value(slider(viewer, 0), wanted)))
            end = time.monotonic() + 30.0
            while abs(figure.q[0] - reached) > 1e-9:
                assert time.monotonic() < end, figure.q
                time.sleep(0.02)
            with panel.lock:  # until the sliders have followed
                assert panel.sliders[0].value == pytest.approx(reached)


def test_no_message_is_too_odd_to_be_judged(viewer: Viewer) -> None:
    """Messages have random values in every field, or random bytes."""
    inputs, draw = Inputs(viewer.server.gui._gui_input_handle_from_uuid), random.Random(1)
    odd = [None, True, 0.5, math.nan, -1, 2**64 - 1, "", "abc", b"abc", [], [0.0] * 3, [[]], {}]
    odd += [{"value": value} for value in odd] + [{1: None}, *inputs.known]
    for _ in range(3000):
        kind = draw.choice([*FIELDS])
        letter = {"type": kind} | {name: draw.choice(odd) for name in FIELDS[kind]}
        raw = bytearray(msgspec.msgpack.encode(letter))
        for _ in range(draw.randrange(3)):
            raw[draw.randrange(len(raw))] = draw.randrange(256)
        assert isinstance(objection(bytes(raw), inputs), str)


def test_fields_are_those_of_viser() -> None:
    """If viser changes a message, its checks must be reviewed."""
    from viser import _messages

    for kind, fields in FIELDS.items():
        assert set(fields) == set(viser.infra._messages.wire_field_names(getattr(_messages, kind)))
