"""Velocity steps agree with SciPy's bounded least squares and closed forms, and respect limits."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from support import raises, tree

import chasles
from chasles.control import resolved_rate
from chasles.errors import InputError
from chasles.functions.rates import LEAST as LEAST_BY_TYPE
from chasles.model.spaces import size
from chasles.robots import five_bar, planar, puma560

PUMA = puma560()
DT = 0.002
LEAST = LEAST_BY_TYPE["float64"]
RATES = np.array([0.1, -0.2, 0.1, 0.1, 0.05, -0.1])


def best(
    J: np.ndarray, x: np.ndarray, damping: float, bounds: Any, keep: np.ndarray, at: np.ndarray
) -> np.ndarray:
    """Return SciPy's minimizer of |J v - x|^2 + damping |v|^2 within bounds.

    The product `keep @ v` is constrained to `keep @ at`.
    """
    firm, n = 1e6, J.shape[1]
    A = np.concatenate([J, np.sqrt(damping) * np.eye(n), firm * keep])
    b = np.concatenate([x, np.zeros(n), firm * (keep @ at)])
    found = lsq_linear(A, b, bounds, method="bvls", tol=1e-15, max_iter=200)
    assert found.success
    return np.asarray(found.x)


def objective(J: np.ndarray, x: np.ndarray, damping: float, v: np.ndarray) -> float:
    return float(np.sum((J @ v - x) ** 2) + damping * np.sum(v**2))


def rows(robot: chasles.Robot, q: np.ndarray, frame: str, part: slice) -> np.ndarray:
    """Return rows of a Jacobian, with lengths divided by the robot's size."""
    scale = np.repeat([1.0, 1.0 / size(robot.model)], 3)
    found: np.ndarray = (robot.jacobian(q, frame=frame) * scale[:, None])[part]
    return found


def test_is_the_best_velocity_within_bounds() -> None:
    """The weighted objective is as small as SciPy's at 300 states, many with joints at bounds."""
    rng = np.random.default_rng(0)
    weights = np.array([1.0, 2.0, 0.5, 3.0, 1.0, 4.0])
    step = resolved_rate(
        PUMA, {"tool": "twist"}, dt=DT, damping=0.3, singular=1e-9, weights=weights
    )
    root, scale = np.sqrt(weights), np.repeat([1.0, 1.0 / size(PUMA.model)], 3)
    saturated = 0
    for _ in range(300):
        q, x = PUMA.random(rng), rng.normal(size=6) * rng.choice([0.3, 1.0, 3.0])
        step.velocity[:] = rng.uniform(0.1, 2.0, 6)
        v = step(q, np.zeros(6), x)
        J = rows(PUMA, q, "tool", slice(6)) * root[:, None]
        room = np.array([PUMA.limits.lower - q, PUMA.limits.upper - q]) / DT
        low, high = np.maximum(-step.velocity, room[0]), np.minimum(step.velocity, room[1])
        assert (v >= low - 1e-12).all()
        assert (v <= high + 1e-12).all()
        asked = x * root * scale
        theirs = best(J, asked, LEAST, (low, high), np.empty((0, 6)), np.zeros(6))
        mine = objective(J, asked, LEAST, v)
        assert mine <= objective(J, asked, LEAST, theirs) * (1.0 + 1e-6) + 1e-9
        saturated += int(np.any(np.abs(v) >= step.velocity - 1e-12))
    assert 100 < saturated < 300


def test_lower_priorities_leave_the_higher_ones_alone() -> None:
    """Each of two priorities is as good as SciPy's solution, which keeps the first one fixed."""
    rng = np.random.default_rng(1)
    arm = planar(6)
    tasks = [{"tip": "position"}, {"link4": "position"}]
    step = resolved_rate(arm, tasks, dt=DT, damping=0.1, singular=1e-9)
    first = resolved_rate(arm, tasks[:1], dt=DT, damping=0.1, singular=1e-9)
    step.weights[[1, 4]] = first.weights[1] = 0.0  # the arm moves in the plane of x and z
    for _ in range(150):
        q, x = arm.random(rng), rng.normal(size=6) * rng.choice([0.3, 1.0, 3.0])
        x[[1, 4]] = 0.0
        step.velocity[:] = first.velocity[:] = rng.uniform(0.1, 2.0, 6)
        v, v1 = step(q, np.zeros(6), x), first(q, np.zeros(6), x[:3])
        J1, J2 = (rows(arm, q, f, slice(3, 6, 2)) for f in ("tip", "link4"))
        asked = x / size(arm.model)
        bounds = (-step.velocity, step.velocity)
        assert np.abs(v).max() <= step.velocity.max()
        theirs = best(J1, asked[:3:2], LEAST, bounds, np.empty((0, 6)), np.zeros(6))
        limit = objective(J1, asked[:3:2], LEAST, theirs)
        assert objective(J1, asked[:3:2], LEAST, v1) <= limit * (1.0 + 1e-6) + 1e-9
        assert np.abs(J1 @ (v - v1)).max() < 1e-9
        theirs = best(J2, asked[3::2], LEAST, bounds, J1, v1)
        limit = objective(J2, asked[3::2], LEAST, theirs)
        assert objective(J2, asked[3::2], LEAST, v) <= limit * (1.0 + 1e-4) + 1e-6


def test_is_exact_far_from_singularities_and_bounded_at_them() -> None:
    """Velocities are J^-1 x far from singularities; near them, the documented damping applies."""
    q = np.array([0.3, 0.5, -1.0, 0.2, 0.9, -0.4])
    step = resolved_rate(PUMA, {"tool": "twist"}, dt=DT)
    step.velocity[:] = np.inf
    expected = np.linalg.solve(PUMA.jacobian(q, frame="tool"), RATES)
    assert np.abs(step(q, np.zeros(6), RATES) - expected).max() < 1e-6 * np.abs(expected).max()
    for angle in (1e-1, 1e-2, 1e-3, 0.0):  # the wrist's axes line up
        q[4] = angle
        J = rows(PUMA, q, "tool", slice(6))
        s2 = 1.0 / np.trace(np.linalg.inv(J @ J.T + LEAST * np.eye(6)))
        law = LEAST + 0.05**2 * max(0.0, 1.0 - s2 / 0.05**2) ** 2
        x = RATES / np.repeat([1.0, size(PUMA.model)], 3)
        expected = J.T @ np.linalg.solve(J @ J.T + law * np.eye(6), x)
        found = step(q, np.zeros(6), RATES)
        assert np.abs(found - expected).max() < 1e-6 * np.abs(expected).max()
        assert np.abs(found).max() < np.linalg.norm(x) / (2.0 * 0.05) * 1.1 + 1.0


def test_a_preferred_motion_fills_the_null_space() -> None:
    """Velocities are qd = J^+ x + (1 - J^+ J) qd0."""
    arm, q = planar(4), np.array([0.4, 0.6, -0.5, 0.8])
    step = resolved_rate(arm, {"tip": "position"}, dt=DT)
    step.weights[1] = 0.0
    J = arm.jacobian(q, frame="tip")[3::2]
    x, wish = np.array([0.2, -0.1]), np.array([0.3, 0.1, -0.2, 0.4])
    back = np.linalg.pinv(J)
    expected = back @ x + wish - back @ (J @ wish)
    found = step(q, np.zeros(4), [x[0], 0.0, x[1]], wish)
    assert np.abs(found - expected).max() < 1e-7


def test_limits_of_position_velocity_and_acceleration_hold_all_along() -> None:
    """A tool is pulled away for 2 s; joints brake before their limits, and never exceed them."""
    step = resolved_rate(PUMA, {"tool": "twist"}, dt=DT, acceleration=5.0)
    step.velocity[:] = 1.5
    q, qd = np.array([0.3, 0.5, -1.0, 0.2, 0.9, -0.4]), np.zeros(6)
    at_limit = 0
    for _ in range(1000):
        new = step(q, qd, [0.5, -1.0, 0.7, 0.4, 0.3, -0.6])
        assert np.abs(new - qd).max() <= 5.0 * DT * (1.0 + 1e-12)
        assert np.abs(new).max() <= 1.5
        q, qd = q + DT * new, new
        assert (q >= PUMA.limits.lower - 1e-12).all()
        assert (q <= PUMA.limits.upper + 1e-12).all()
        at_limit += int(np.any(np.abs(q - PUMA.limits.upper) < 1e-3))
    assert at_limit > 100


def test_follows_a_circle_within_limits() -> None:
    """The tool follows a circle of radius 0.1 m in 2 s to 1e-5 m, with feedback of its position."""
    step = resolved_rate(PUMA, {"tool": "twist"}, dt=DT, acceleration=20.0)
    step.velocity[:] = 2.0
    q = np.array([0.3, 0.5, -1.0, 0.2, 0.9, -0.4])
    start = PUMA.forward_kinematics(q, frame="tool")
    qd, worst, gain = np.zeros(6), 0.0, 0.5 / DT
    for k in range(1000):
        phase = np.pi * (k * DT) ** 2 / (k * DT + 0.5)  # from rest
        ahead = np.pi * ((k + 1) * DT) ** 2 / ((k + 1) * DT + 0.5)
        wanted, after = (
            start[:3, 3] + 0.1 * np.array([0.0, np.sin(p), np.cos(p) - 1.0]) for p in (phase, ahead)
        )
        T = PUMA.forward_kinematics(q, frame="tool")
        turn = 0.5 * sum(np.cross(T[:3, c], start[:3, c]) for c in range(3))
        linear = (after - wanted) / DT + gain * (wanted - T[:3, 3])
        qd = step(q, qd, np.concatenate([gain * turn, linear]))
        q = q + DT * qd
        worst = max(worst, float(np.linalg.norm(wanted - T[:3, 3])))
    assert worst < 1e-5


def test_loops_stay_closed() -> None:
    """Both couplers of a five-bar linkage have the given velocity along one axis each."""
    robot, tasks = five_bar(), {"left_coupler": "position", "right_coupler": "position"}
    q = robot.assemble(np.array([1.3, 1.8]))
    step = resolved_rate(robot, tasks, dt=DT)
    step.weights[:] = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0]
    qd, x = np.zeros(4), np.array([0.05, 9.0, 9.0, -0.02, 9.0, 9.0])
    for _ in range(100):
        qd = step(q, qd, x)
        J = [robot.jacobian(q, frame=frame)[3] for frame in tasks]
        assert np.abs(np.stack(J) @ qd - x[[0, 3]]).max() < 1e-6
        q = q + DT * qd
        assert np.abs(robot.loop_residual(q)).max() < 1e-6


def test_floating_bases_batches_and_backends() -> None:
    """A batch is bitwise identical to single states, and agrees with the interpreter."""
    robot = tree(3, 7, floating=True)
    rng = np.random.default_rng(2)
    frame = robot.frames[-1]
    step = resolved_rate(robot, [{frame: "twist"}, {"center of mass": "position"}], dt=DT, passes=4)
    q, qd = robot.random(rng, size=5), rng.normal(size=(5, robot.nv))
    x, wish = rng.normal(size=(5, 9)), rng.normal(size=robot.nv)
    whole = step(q, qd, x, wish)
    assert np.array_equal(whole[3], step(q[3], qd[3], x[3], wish))
    one = chasles.backends.compile(step.program, "interpret")
    limits = (step.weights, step.lower, step.upper, step.velocity, step.acceleration, step.dt)
    rows_in = [np.array(a, float).reshape(1, -1) for a in (q[3], qd[3], x[3], wish, *limits)]
    found = np.empty((1, robot.nv))
    one(rows_in, [found])
    assert np.abs(found[0] - whole[3]).max() < 1e-6 * np.abs(whole).max()


def test_allocates_nothing_after_the_first_call() -> None:
    step = resolved_rate(PUMA, {"tool": "twist"}, dt=DT)
    q, qd, out = np.full(6, 0.4), np.zeros(6), np.empty(6)
    for _ in range(10):
        step(q, qd, RATES, out=out)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in range(1000):
            step(q, qd, RATES, out=out)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 200  # counter of the loop
    assert peak - before < 2000  # no large temporary arrays
    assert np.array_equal(out, step(q, qd, RATES))


@pytest.mark.parametrize("tasks", [{"tool": "twist"}, {"link3": "position"}])
def test_unknown_numbers_are_refused_or_stay_unknown(tasks: Any) -> None:
    """Each NaN is reported by name, alone and in a batch; with `out`, the result contains NaN."""
    step = resolved_rate(PUMA, tasks, dt=DT)
    sizes = {"q": 6, "qd": 6, "rates": len(step.rows), "preferred": 6}
    for name, most in sizes.items():
        for k in range(most):
            given = {each: np.full(n, 0.2) for each, n in sizes.items()}
            given[name][k] = np.nan
            with pytest.raises(InputError, match=rf"{name}\[{k}\] is nan"):
                step(*given.values())
            assert np.isnan(step(*given.values(), out=np.zeros(6))).any()
            given = {each: np.tile(a, (3, 1)) for each, a in given.items()}
            given[name][:2] = 0.2
            with pytest.raises(InputError, match=rf"{name}\[2, {k}\] is nan"):
                step(*given.values())


@pytest.mark.parametrize(
    ("code", "tasks", "options"),
    [
        ("E-CONTROL-401", [], {}),
        ("E-CONTROL-402", [{}], {}),
        ("E-CONTROL-403", {"tool": "pose"}, {}),
        ("E-CONTROL-404", {"center of mass": "twist"}, {}),
        ("E-MODEL-034", {"hand": "twist"}, {}),
        ("E-CONTROL-405", {"tool": "twist"}, {"dt": 0.0}),
        ("E-CONTROL-405", {"tool": "twist"}, {"damping": np.nan}),
        ("E-CONTROL-406", {"tool": "twist"}, {"acceleration": -1.0}),
        ("E-CONTROL-406", {"tool": "twist"}, {"weights": [np.nan] * 6}),
        ("E-CONTROL-406", {"tool": "twist"}, {"weights": np.inf}),
        ("E-CALL-056", {"tool": "twist"}, {"weights": [1.0] * 5}),
        ("E-CALL-003", {"tool": "twist"}, {"passes": 0}),
    ],
)
def test_what_means_nothing_is_refused(code: str, tasks: Any, options: dict[str, Any]) -> None:
    with raises(code):
        resolved_rate(PUMA, tasks, **({"dt": DT} | options))


def test_what_is_not_a_robot_is_refused() -> None:
    with raises("E-CALL-055"):
        resolved_rate(None, {"tool": "twist"}, dt=DT)  # type: ignore[arg-type]
