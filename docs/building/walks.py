"""Trace three calls through the source: `python docs/building/walks.py` prints the modules used.

The script also writes the lists between two marks in docs/architecture.md. For each call, the list
contains the modules of chasles except `expr` and `mathematics`, by layer and in the order of their
first call. The script also counts calls from a lower to a higher layer, which should not occur.
Each call runs in a new process with an empty cache, except for the fast entry, which all functions
share and which is compiled once per machine. Other threads are not traced: a separate thread stores
new code, using the modules `backends/cache` and `writing`.
"""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from building.layers import RANK, ROOT, unit

BESIDE = ("", "expr", "mathematics", "version", "errors", "entry_points", "names")
"""Units that are not counted: the algebra, and units that every layer may use."""


class Walk(NamedTuple):
    """Modules in the order of their first call, and calls from a module to a higher layer."""

    modules: list[Path]
    upward: dict[tuple[Path, Path], int]


def walked(call: Callable[[], Any]) -> Walk:
    """Run a call and record the files of chasles that it uses.

    Code that runs while a module is imported is not part of the call and is not counted.
    """
    modules: dict[Path, None] = {}
    upward: dict[tuple[Path, Path], int] = {}
    stack: list[Path | None] = [None]  # for each frame, the last file of chasles
    importing: list[FrameType] = []

    @cache
    def own(file: str) -> Path | None:
        path = Path(file)
        return path if path.is_relative_to(ROOT) and unit(path) not in BESIDE else None

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            if frame.f_code.co_name == "<module>":
                importing.append(frame)
            here = None if importing else own(frame.f_code.co_filename)
            caller = stack[-1]
            stack.append(here or caller)
            if here is not None and here is not caller:
                modules.setdefault(here)
                if caller is not None and RANK[unit(caller)] < RANK[unit(here)]:
                    upward[caller, here] = upward.get((caller, here), 0) + 1
        elif event == "return" and len(stack) > 1:
            stack.pop()
            if importing and importing[-1] is frame:
                importing.pop()

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Walk(list(modules), upward)


# The calls ----------------------------------------------------------------------------------------

ARM = """<robot name="arm"><link name="base"/><link name="rod"><inertial><mass value="1"/>
<origin xyz="0.5 0 0"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
</link><joint name="pin" type="continuous"><parent link="base"/><child link="rod"/>
<axis xyz="0 1 0"/></joint></robot>"""


def inverse_dynamics(folder: Path) -> Callable[[], Any]:
    """Load a URDF file, and compute joint torques for the first time."""
    import chasles

    path = folder / "arm.urdf"
    path.write_text(ARM)
    return lambda: chasles.load(path).inverse_dynamics([0.1], [0.2], [0.3])


def forward_dynamics(folder: Path) -> Callable[[], Any]:
    """Compute forward dynamics of a four-bar linkage, with a closed loop, for the first time."""
    import chasles

    q = chasles.robots.four_bar().assemble([0.5])
    robot = chasles.robots.four_bar()
    return lambda: robot.forward_dynamics(q, 0.0 * q, 0.0 * q)


def sliding_brick(folder: Path) -> Callable[[], Any]:
    """Simulate a brick that slides on a plane with rigid contact, for 20 ms."""
    import numpy as np

    import chasles
    from chasles.contact import Box, Pair, Plane, Rigid

    path = folder / "brick.urdf"
    path.write_text(ARM[: ARM.index("<joint")].replace('<link name="base"/>', "") + "</robot>")
    brick = chasles.load(path, floating=True)
    contacts = [Pair(Box("rod", (0.2, 0.2, 0.1)), Plane(), Rigid(friction=0.3))]
    q, qd = brick.neutral(), np.zeros(6)
    q[6], qd[3] = 0.05, 1.0
    return lambda: chasles.simulate(brick, q, qd, duration=0.02, dt=1e-3, contacts=contacts)


CALLS: dict[str, tuple[Callable[[Path], Callable[[], Any]], int]] = {
    "inverse_dynamics": (inverse_dynamics, 25),
    "forward_dynamics": (forward_dynamics, 30),
    "sliding_brick": (sliding_brick, 45),
}
"""Function that prepares each call, and the maximum number of modules that the call may use."""


# Reports ------------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[1] / "architecture.md"
BLOCK = re.compile(r"(<!-- walks -->\n).*?(<!-- end of walks -->)", re.DOTALL)


def walk(name: str) -> Walk:
    """Trace one of the calls, in this process, with its files in the current folder."""
    import chasles

    call = CALLS[name][0](Path())
    other = chasles.robots.planar(1)
    for _ in range(2):
        other.mass_matrix([0.0])  # compiles the entry that all functions share
    return walked(call)


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix().removesuffix(".py").removesuffix("/__init__")


def report(name: str) -> str:
    """Return a trace as text: the modules of each layer in the order of their first calls."""
    found, most = walk(name), CALLS[name][1]
    layers: dict[int, list[str]] = {}
    for path in found.modules:
        layers.setdefault(RANK[unit(path)], []).append(named(path))
    lines = [
        f"{CALLS[name][0].__doc__}",
        f"{len(found.modules)} modules; limit: {most}",
    ]
    for rank in sorted(layers, reverse=True):
        head = f"{rank + 1:2}  "
        lines += textwrap.wrap(
            " ".join(layers[rank]), 96, initial_indent=head, subsequent_indent="    "
        )
    calls = sum(found.upward.values())
    pairs = [f"{named(a)} > {named(b)}" for a, b in sorted(found.upward)]
    lines += textwrap.wrap(f"{calls} calls up the layers: {', '.join(pairs) or 'none'}", 96)
    return "\n".join(lines) + "\n"


def apart(name: str) -> str:
    """Return the report of a process with an empty cache, and the module count with a full one."""
    with tempfile.TemporaryDirectory() as cache, contextlib.chdir(cache):
        kept = {**os.environ, "CHASLES_CACHE": cache, "PYTHONPATH": str(ROOT.parent)}
        command = [sys.executable, str(Path(__file__).resolve()), name]
        first, second = (
            subprocess.run(command, check=True, text=True, env=kept, stdout=-1).stdout
            for _ in range(2)
        )
    again = second.splitlines()[1].partition(" ")[0]
    return first.replace(" modules;", f" modules ({again} with the code in the cache);", 1)


def page(text: str) -> str:
    """Return the page with updated lists."""
    body = "\n".join(map(apart, CALLS))
    return BLOCK.sub(lambda found: f"{found[1]}```text\n{body}```\n{found[2]}", text)


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.stdout.write(report(sys.argv[1]))
    else:
        PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
        print(BLOCK.search(PAGE.read_text("utf-8"))[0])
