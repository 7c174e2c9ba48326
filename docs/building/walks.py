"""Walk three calls through the source: `python docs/building/walks.py` prints the modules entered,
and writes them between two marks of docs/architecture.md.

For each call: the modules of chasles beyond `expr` and `mathematics`, in the order in which they
are first entered, with their layers; and calls that go up the layers, of which there should be
none: then a walk enters each layer once on the way down, and leaves it once on the way up. Each
walk runs in a new process with an empty cache, but for the entry that all functions share, which is
made once for a machine. Work in other threads is not counted: new code is stored in the cache by a
thread that no signal interrupts, which enters `backends/cache` and `writing`.
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

BESIDE = ("", "expr", "mathematics", "version", "errors", "entry_points")
"""Units that are not counted: the algebra, and what every layer may use."""


class Walk(NamedTuple):
    """Modules by their first entry, and calls from one module up to another."""

    modules: list[Path]
    upward: dict[tuple[Path, Path], int]


def walked(call: Callable[[], Any]) -> Walk:
    """Run a call and see which files of chasles it enters.

    What runs while a module is imported is not counted: it is no part of the call.
    """
    modules: dict[Path, None] = {}
    upward: dict[tuple[Path, Path], int] = {}
    stack: list[Path | None] = [None]  # the last file of chasles, for each frame
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
    """Load a URDF file, and joint torques: the first call."""
    import chasles

    path = folder / "arm.urdf"
    path.write_text(ARM)
    return lambda: chasles.load(path).inverse_dynamics([0.1], [0.2], [0.3])


def forward_dynamics(folder: Path) -> Callable[[], Any]:
    """Forward dynamics with loops: the first call of a four-bar linkage."""
    import chasles

    q = chasles.robots.four_bar().assemble([0.5])
    robot = chasles.robots.four_bar()
    return lambda: robot.forward_dynamics(q, 0.0 * q, 0.0 * q)


def sliding_brick(folder: Path) -> Callable[[], Any]:
    """A brick that slides on a plane by rigid contact, for 20 ms."""
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
"""What is called, and the most modules that it should walk through."""


# Reports ------------------------------------------------------------------------------------------

PAGE = Path(__file__).parents[1] / "architecture.md"
BLOCK = re.compile(r"(<!-- walks -->\n).*?(<!-- end of walks -->)", re.DOTALL)


def walk(name: str) -> Walk:
    """The walk of one of the calls, in this process, with its files in the present folder."""
    import chasles

    call = CALLS[name][0](Path())
    other = chasles.robots.planar(1)
    for _ in range(2):
        other.mass_matrix([0.0])  # makes the entry that all functions share
    return walked(call)


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix().removesuffix(".py").removesuffix("/__init__")


def report(name: str) -> str:
    """A walk in words: the modules of each layer in the order of their first calls."""
    found, most = walk(name), CALLS[name][1]
    layers: dict[int, list[str]] = {}
    for path in found.modules:
        layers.setdefault(RANK[unit(path)], []).append(named(path))
    lines = [
        f"{CALLS[name][0].__doc__}",
        f"{len(found.modules)} modules; {most} at most are wanted",
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
    """The report of a process that has compiled nothing; the count also of one that need not."""
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
    """The page with the walks that are true now."""
    body = "\n".join(map(apart, CALLS))
    return BLOCK.sub(lambda found: f"{found[1]}```text\n{body}```\n{found[2]}", text)


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.stdout.write(report(sys.argv[1]))
    else:
        PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
        print(BLOCK.search(PAGE.read_text("utf-8"))[0])
