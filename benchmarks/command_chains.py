"""Time inverse and forward dynamics of robots with 10 to 1000 bodies, including the first call."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from rich.console import Console
from rich.table import Table

import chasles
from benchmarks.compare import empty_cache, relative_error
from benchmarks.console import WrongAnswer, output
from benchmarks.states import Array
from benchmarks.targets import CHAIN_GROWTH, CHAIN_SECONDS
from benchmarks.timing import Rounds, interleaved, seconds
from chasles.algorithms.spatial.dynamics import inverse_dynamics
from chasles.model import Description, JointData, LinkData
from chasles.numeric.handles import ALGORITHMS, Chain, step

KINDS = ("general_chain", "mixed_chain", "mixed_tree")
"""Kinds of robots: revolute joints; mixed joint types; a tree with mixed joint types.

The mixed types are revolute, prismatic and spherical.
"""

SIZES = (10, 30, 100, 300, 1000)
BATCH = 256
"""Number of states in a batch.

The arrays of mixed robots take 16 MB for 1000 bodies and 0.16 MB for 10 bodies. Only the arrays of
the shortest robot fit in the cache of a core.
"""

ALLOWED = 1e-6
"""Tolerance for the relative error of torques.

Accelerations are converted to torques before they are compared. The condition number of the mass
matrix, for up to 1000 bodies, affects this error.
"""


@dataclass(frozen=True)
class Row:
    """Times (s) of the first call, and per state for single calls and in a batch.

    `code` is the size (bytes) of the machine code, and `error` the relative error of torques.
    `operations` counts multiplications and additions of the program, or is 0 for several programs.
    """

    kind: str
    bodies: int
    batch: int
    function: str
    first: float
    one: float
    batched: float
    code: int
    operations: int
    error: float


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument(
        "--sizes", nargs="+", type=int, default=list(SIZES), help="numbers of bodies"
    )
    parser.add_argument("--batch", type=int, default=BATCH, help="states per batch (default: 256)")
    parser.add_argument(
        "--equal-arrays",
        action="store_true",
        help="use larger batches for shorter robots, so that all arrays have equal size",
    )
    parser.add_argument("--quick", action="store_true", help="short trial run with few rounds")


def run(chosen: argparse.Namespace) -> int:
    """Run the benchmark, print the results and return 0."""
    errors, rows = Console(stderr=True), []
    rounds = Rounds(2, 2) if chosen.quick else Rounds(10, 60)
    for kind in chosen.kinds:
        for bodies in chosen.sizes:
            errors.print(f"{kind} of {bodies} bodies")
            more = max(chosen.sizes) // bodies if chosen.equal_arrays else 1
            rows += measured(kind, bodies, chosen.batch * more, rounds)
    show(rows)
    return 0


def measured(kind: str, bodies: int, batch: int, rounds: Rounds) -> list[Row]:
    """Measure both functions of one robot, and check them against the recursion on plain floats."""
    with empty_cache():
        made = []
        robot_seconds = seconds(lambda: made.append(robot_of(kind, bodies)))
        (robot,) = made
        rng = np.random.default_rng(0)
        q = robot.random(rng, size=batch)
        qd, x = 0.1 * rng.normal(size=(2, batch, robot.nv))
        rows = []
        for name in ("inverse_dynamics", "forward_dynamics"):
            method = getattr(robot, name)
            first = robot_seconds + seconds(partial(method, q[0], qd[0], x[0]))
            out = method(q, qd, x, threads=1)
            tau, qdd = (out, x) if name == "inverse_dynamics" else (x, out)
            error = relative_error(by_hand(robot, (q[1], qd[1], qdd[1]))[None], tau[1:2])
            if not error <= ALLOWED:
                raise WrongAnswer(f"{kind} of {bodies} bodies, {name}: relative error {error:.1e}")
            fast, single = getattr(robot, name), np.empty(robot.nv)
            state = q[0].copy(), qd[0].copy(), x[0].copy()
            runs = [
                partial(_often, partial(fast, *state, out=single)),
                partial(fast, q, qd, x, out=out, threads=1),
            ]
            one, batched = (t.minimum for t in interleaved(runs, rounds))
            function = robot.function(name)
            code = len(function.kernel.artifact.object_code)
            operations = function.program.count.flops
            times = first, one / TIMES, batched / batch
            rows.append(Row(kind, bodies, batch, name, *times, code, operations, error))
        if kind == "general_chain":
            rows.append(by_halves(robot, (q, qd, x), rounds))
    return rows


def by_halves(robot: chasles.Robot, states: Sequence[Array], rounds: Rounds) -> Row:
    """Measure forward dynamics by the divide-and-conquer method `Chain`, on one thread."""
    state, found = [x[0] for x in states], []
    first = seconds(lambda: found.append(Chain(robot).forward_dynamics(*state)))
    solve, bodies = Chain(robot).forward_dynamics, robot.nv
    tau = by_hand(robot, (*state[:2], found[0]))
    error = relative_error(tau[None], state[2][None])
    if not error <= ALLOWED:
        raise WrongAnswer(f"chain of {bodies} bodies, Chain: relative error {error:.1e}")
    runs = [partial(solve, *state, threads=1), partial(solve, *states, threads=1)]
    one, batched = (t.minimum for t in interleaved(runs, rounds))
    code = sum(len(step(each.__name__).kernel.artifact.object_code) for each in ALGORITHMS)
    name, batch = "forward_dynamics, Chain", len(states[0])
    times = first, one, batched / batch
    return Row("general_chain", bodies, batch, name, *times, code, 0, error)


TIMES = 20


def _often(call: partial[Array]) -> None:
    for _ in range(TIMES):
        call()


def robot_of(kind: str, bodies: int) -> chasles.Robot:
    """Return a robot with the given number of bodies."""
    if kind == "general_chain":
        return chasles.robots.general_chain(bodies)
    general = chasles.robots.general_tree(bodies, 1).model.source
    types = ("revolute", "prismatic", "spherical", "revolute", "spherical")
    joints = []
    for k, joint in enumerate(general.joints):
        parent = k if kind == "mixed_chain" or k < 3 else k - (k * k) % 3
        joints.append(
            JointData(joint.name, types[k % 5], general.links[parent].name, joint.child, joint.pose)
        )
    links = tuple(LinkData(link.name, link.inertia) for link in general.links)
    return chasles.Robot(Description(kind, links, tuple(joints)))


def by_hand(robot: chasles.Robot, state: Sequence[Array]) -> Array:
    """Return joint torques by the spatial recursion on floats, without tracing or compiling."""
    q, qd, qdd = (list(map(float, x)) for x in state)
    model = robot.model
    rates = model.velocities(qd), model.velocities(qdd)
    efforts = inverse_dynamics(model, model.positions(q), *rates)
    return np.array([float(x) for i in model.movers for x in efforts[i]])


def show(rows: Sequence[Row]) -> None:
    """Print one row per robot and function. Growth is relative to the shortest robot, per body."""
    names = ("first call s", "code kB", "call µs", "ns/body", "growth", "batch", "ns/body")
    more = ("growth", "operations/body", "growth", "error")
    table = Table("robot", "bodies", "function", *names, *more)
    for row in rows:
        shortest = next(r for r in rows if (r.kind, r.function) == (row.kind, row.function))
        cells = []
        for name in ("one", "batched"):
            mine = getattr(row, name) / row.bodies
            growth = mine / (getattr(shortest, name) / shortest.bodies)
            cells += [f"{1e9 * mine:.1f}", f"{growth:.2f}"]
            cells += [f"{row.batch}"] if name == "one" else []
        cells += ["", ""]
        if row.operations:
            mine, least = row.operations / row.bodies, shortest.operations / shortest.bodies
            cells[-2:] = [f"{mine:.0f}", f"{mine / least:.2f}"]
        table.add_row(
            row.kind,
            f"{row.bodies}",
            row.function,
            f"{row.first:.2f}",
            f"{row.code / 1000:.0f}",
            f"{1e6 * row.one:.2f}",
            *cells,
            f"{row.error:.0e}",
        )
    output().print(table)
    wanted = f"first call at most {CHAIN_SECONDS:g} s, growth at most {CHAIN_GROWTH:g}"
    output().print(f"Processor time on one thread. Targets: {wanted}.")
