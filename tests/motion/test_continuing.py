"""Motions simulated in parts are identical to motions in one piece, wherever they stop."""

import math
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import raises

import chasles
from chasles.simulate import INTEGRATORS

DOG = chasles.robots.quadruped()
ROD = chasles.robots.planar(1)
ROCKER = chasles.robots.four_bar(1.0, 0.9, 0.5, 0.7).with_gravity([0.0, 0.0, 0.0])


def in_parts(robot: chasles.Robot, *state: Any, steps: list[int], **options: Any) -> list[Any]:
    """Return consecutive trajectories with the given numbers of steps; the last has the rest."""
    found, end = [], None
    while end is None or not end.over:
        most = steps[len(found)] if len(found) < len(steps) else None
        found.append(chasles.simulate(robot, *state, steps=most, resume=end, **options))
        end = pickle.loads(pickle.dumps(found[-1].end))
    return found


def same(parts: list[Any], whole: Any) -> None:
    """Check that the states, the events and the end of a motion are bitwise identical."""
    assert np.array_equal(np.concatenate([part.t for part in parts]), whole.t)
    for name in ("q", "qd"):
        joined = np.concatenate([getattr(part, name) for part in parts], axis=-2)
        assert np.array_equal(joined, getattr(whole, name))
    assert [e.t for part in parts for e in part.events] == [e.t for e in whole.events]
    assert [t for part in parts for t in part.rechosen] == list(whole.rechosen)
    last = parts[-1].end
    assert (last.t, last.over) == (whole.end.t, True)
    assert np.array_equal(last.q, whole.end.q)
    assert all(np.array_equal(last.memory[name], whole.end.memory[name]) for name in last.memory)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_parts_are_the_whole(integrator: str) -> None:
    """A floating robot with damping moves in parts; some end at steps that are not stored."""
    q, qd = DOG.random(seed=0), np.linspace(-1.0, 1.0, DOG.nv)
    options: dict[str, Any] = {"duration": 0.0123, "dt": 1e-3, "integrator": integrator, "every": 3}
    options["tau"] = lambda t, q, qd: np.sin(50.0 * t) - 0.1 * qd
    whole = chasles.simulate(DOG, q, qd, **options)
    parts = in_parts(DOG, q, qd, steps=[1, 1, 4, 2], **options)
    assert len(parts) > 2
    assert len(parts[1].t) == 0
    same(parts, whole)


def test_steps_that_the_error_chooses_go_on_as_they_were() -> None:
    """The next step would be 1 ms long without the length of the last step."""
    arm = chasles.robots.puma560()
    q, qd = arm.random(seed=0), np.zeros(arm.nv)
    options: dict[str, Any] = {"duration": 1.0, "integrator": "dopri5"}
    parts = in_parts(arm, q, qd, steps=[3, 5, 7], **options)
    assert len(parts) == 4
    same(parts, chasles.simulate(arm, q, qd, **options))


def test_times_of_output_are_kept_in_their_parts() -> None:
    options: dict[str, Any] = {"duration": 0.1, "dt": 0.01, "times": np.linspace(0.0, 0.1, 23)}
    parts = in_parts(ROD, [0.1], [0.2], steps=[1, 3], **options)
    assert [len(part.t) for part in parts] == [3, 6, 14]
    same(parts, chasles.simulate(ROD, [0.1], [0.2], **options))


def test_events_go_on_from_part_to_part() -> None:
    """A rod rebounds from two walls, and an event stops it between two steps."""
    walls = [
        chasles.Event(lambda t, q, qd, s=s: q[0] - s, s, lambda t, q, qd: (q, -0.9 * qd), name="w")
        for s in (-1, 1)
    ]
    late = chasles.Event(lambda t, q, qd: t - 1.2345, name="late")
    rod = ROD.with_gravity([0.0, 0.0, 0.0])
    options: dict[str, Any] = {"duration": 2.0, "dt": 0.01, "events": [*walls, late]}
    whole = chasles.simulate(rod, [0.0], [9.0], **options)
    assert len(whole.events) > 4
    assert whole.end is not None
    assert math.isclose(whole.end.t, 1.2345)
    same(in_parts(rod, [0.0], [9.0], steps=[12, 1, 1, 1, 10, 1, 30], **options), whole)


def test_events_without_end_are_found_in_parts_too() -> None:
    """Accumulating bounces exceed the number of events that all parts together may have."""
    fall = chasles.Event(
        lambda t, q, qd: q[0] + 0.5, -1, lambda t, q, qd: (q, -0.5 * qd), name="floor"
    )
    options: dict[str, Any] = {"duration": 3.0, "dt": 0.5, "events": fall, "steps": 40}

    def bounce() -> None:
        end = None
        for _ in range(40):
            end = chasles.simulate(ROD, [0.0], [0.0], resume=end, **options).end

    with raises("E-MOTION-061"):
        bounce()


def test_closed_loops_keep_their_coordinates() -> None:
    """A double rocker changes its coordinates at least twice; each batch member has its own."""
    q = ROCKER.assemble([[1.0], [0.8]])
    qd = ROCKER.complete(q, [[1.0], [0.3]])
    options: dict[str, Any] = {"duration": 2.0, "dt": 5e-3}
    whole = chasles.simulate(ROCKER, q, qd, **options)
    assert len(whole.rechosen) > 1
    same(in_parts(ROCKER, q, qd, steps=[50, 50, 170, 31], **options), whole)


def test_charts_of_another_motion_do_not_count() -> None:
    """A resumed motion uses the charts of the stopped motion.

    The same coordinates, chosen in another motion, may have other pivots.
    """
    options: dict[str, Any] = {"duration": 0.4, "dt": 0.01}
    robots = [chasles.robots.four_bar() for _ in range(2)]
    q = robots[0].assemble([0.5])
    qd = robots[0].complete(q, [1.0])
    part = chasles.simulate(robots[0], q, qd, steps=5, **options)
    other = robots[1].assemble([0.9])
    elsewhere = chasles.simulate(robots[1], other, 0.0 * qd, **options).end
    ends = [chasles.simulate(r, q, qd, resume=part.end, **options).end for r in robots]
    assert all([elsewhere, *ends])
    pivots = [end.memory["chart_pivots"][end.memory["charts"]] for end in (elsewhere, *ends)]
    assert not np.array_equal(pivots[0], pivots[1])
    assert np.array_equal(pivots[1], pivots[2])
    assert np.array_equal(ends[0].qd, ends[1].qd)


def test_closed_loops_go_on_in_another_process(tmp_path: Path) -> None:
    """Another process has no charts, and recreates all of them with the same pivots."""
    code = """
import pickle, sys
import numpy as np
import chasles
robot = chasles.robots.four_bar(1.0, 0.9, 0.5, 0.7).with_gravity([0.0, 0.0, 0.0])
q = robot.assemble([1.0])
end, file = None, sys.argv[1]
if sys.argv[2] != "first":
    end = pickle.load(open(file, "rb"))
steps = int(sys.argv[3]) or None
run = chasles.simulate(
    robot, q, robot.complete(q, [1.0]), duration=2.0, dt=4e-3, steps=steps, resume=end
)
pickle.dump(run.end, open(file, "wb"))
"""
    ends = []
    for calls in ([("first", 0)], [("first", 300), ("then", 90), ("then", 0)]):
        file = tmp_path / f"end{len(calls)}"
        for which, steps in calls:
            arguments = [sys.executable, "-c", code, str(file), which, str(steps)]
            subprocess.run(arguments, check=True)
        ends.append(pickle.loads(file.read_bytes()))
    assert np.array_equal(ends[0].q, ends[1].q)
    assert np.array_equal(ends[0].qd, ends[1].qd)
    assert len(ends[0].memory["chart_rows"]) > 1
    for name, array in ends[0].memory.items():
        assert np.array_equal(array, ends[1].memory[name]), name


def test_what_cannot_be_gone_on_with_is_refused() -> None:
    options: dict[str, Any] = {"duration": 0.01, "dt": 1e-3}
    part = chasles.simulate(ROD, [0.1], [0.0], steps=3, **options)
    over = chasles.simulate(ROD, [0.1], [0.0], **options)
    with raises("E-MOTION-051", "0.01"):
        chasles.simulate(ROD, [0.1], [0.0], resume=over.end, **options)
    for other in (
        {**options, "integrator": "dopri5"},
        {**options, "duration": 1e-3},
        {**options, "start": 5.0},
    ):
        with raises("E-MOTION-052"):
            chasles.simulate(ROD, [0.1], [0.0], resume=part.end, **other)
    with raises("E-MOTION-052"):
        chasles.simulate(ROD, [[0.1]], [0.0], resume=part.end, **options)
    wrong: Any = part
    with raises("E-MOTION-050"):
        chasles.simulate(ROD, [0.1], [0.0], resume=wrong, **options)
    for steps in (0, True, 1.5):
        with raises("E-CALL-003"):
            chasles.simulate(ROD, [0.1], [0.0], steps=steps, **options)
