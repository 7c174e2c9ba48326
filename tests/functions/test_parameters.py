"""Robot parameters as inputs of functions: values, batches and derivatives.

Reference robots are built here from edited descriptions, not by the tested code.
"""

import pickle
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from support import TARGETS, close, raises, state, tree

import chasles
from chasles.algorithms import FUNCTIONS
from chasles.functions.tracing import signature
from chasles.mathematics.linear import Matrix, Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia, Transform
from chasles.robots import planar, puma560

FUNCTION_OPTIONS: dict[str, dict[str, Any]] = {
    "inverse_dynamics": {},
    "forward_dynamics": {},
    "mass_matrix": {},
    "forward_kinematics": {"frame": "tip"},
    "jacobian": {"frame": "tip"},
    "potential_energy": {},
}
STEP, SLACK = 1e-3, 2e-9
"""Step and tolerance of fourth-order differences, whose rounding error is 1e-11 and whose
truncation error is 1e-13 times the fifth derivative.
"""


@cache
def robot_of(name: str) -> chasles.Robot:
    """Return a tree with fixed joints, links without inertia, and armature."""
    make: dict[str, Callable[[], chasles.Robot]] = {
        "fixed": lambda: tree(3, 42, floating=False),
        "floating": lambda: tree(3, 52, floating=True),
        "mimic": lambda: tree(5, 45, floating=False, mimics=True),
    }
    return make[name]()


def other(robot: chasles.Robot, name: str, rng: np.random.Generator) -> np.ndarray:
    """Return another valid value of a parameter."""
    value = robot.parameter(name)
    kind = name.rpartition(".")[2]
    if kind == "mass":
        return np.asarray(value + rng.uniform(0.2, 1.0))
    if kind in ("center", "gravity"):
        return value + rng.uniform(-0.3, 0.3, 3)
    if kind == "inertia":
        points = rng.uniform(-0.2, 0.2, (4, 3))
        return value + sum(p @ p * np.eye(3) - np.outer(p, p) for p in points)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    pose = np.eye(4)
    pose[:3, :3] = turn * np.sign(np.linalg.det(turn))
    pose[:3, 3] = rng.uniform(-0.5, 0.5, 3)
    return pose


def rebuilt(robot: chasles.Robot, values: Mapping[str, np.ndarray]) -> chasles.Robot:
    """Return the robot rebuilt with other parameter values."""
    source = robot.model.source
    links, joints = list(source.links), list(source.joints)
    for k, link in enumerate(links):
        names = [f"{link.name}.{what}" for what in ("mass", "center", "inertia")]
        if any(name in values for name in names):
            m, c, I = (np.asarray(values.get(name, robot.parameter(name))) for name in names)
            tensor = Symmetric(*(I[i] for i in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))))
            inertia = RigidInertia.from_center(float(m), Vector(tuple(map(float, c))), tensor)
            links[k] = replace(link, inertia=inertia)
    for k, joint in enumerate(joints):
        if f"{joint.name}.placement" in values:
            T = values[f"{joint.name}.placement"]
            R = Matrix(tuple(tuple(map(float, row)) for row in T[:3, :3]))
            pose = Transform.from_pose(R, Vector(tuple(map(float, T[:3, 3]))))
            joints[k] = replace(joint, pose=pose)
    gravity = Vector(tuple(map(float, values.get("gravity", robot.gravity))))
    new = replace(source, links=tuple(links), joints=tuple(joints), gravity=gravity)
    return chasles.Robot(new, mimic=robot.mimic)


def inputs(robot: chasles.Robot, function: str, seed: int, size: Any = ()) -> list[np.ndarray]:
    names = signature(FUNCTIONS[function][0].algorithm).inputs
    return list(state(robot, seed, size))[: sum(name != "f_ext" for name in names)]


def all_names(robot: chasles.Robot) -> list[str]:
    """Return the names of all parameters of a robot."""
    links = [f"{n}.{what}" for n in robot.bodies for what in ("mass", "center", "inertia")]
    return ["gravity", *links, *(f"{j.name}.placement" for j in robot.model.source.joints)]


def compare(
    robot: chasles.Robot,
    function: str,
    values: Mapping[str, np.ndarray],
    backend: str = "interpret",
) -> None:
    """Compare a function with parameters with the plain function of a rebuilt robot."""
    options = FUNCTION_OPTIONS[function]
    free = chasles.compile(robot, function, backend=backend, parameters=tuple(values), **options)
    plain = chasles.compile(rebuilt(robot, values), function, backend="interpret", **options)
    given = inputs(robot, function, 1)
    expected = plain(*given)
    slack = 1e-10 if function == "forward_dynamics" else 1e-12
    close(free(*given, *values.values()), expected, slack, scale=1.0)


# Values ----------------------------------------------------------------------------------------


def test_values_of_a_rod() -> None:
    """The parameters are those of a rod of 1 m and 1 kg along x."""
    robot = planar(2)
    assert robot.parameter("link1.mass").shape == ()
    assert robot.parameter("link1.mass") == 1.0
    np.testing.assert_allclose(robot.parameter("link1.center"), [0.5, 0.0, 0.0])
    I = robot.parameter("link1.inertia")
    np.testing.assert_allclose(I, np.diag([I[0, 0], 1.0 / 12.0, 1.0 / 12.0]), atol=1e-15)
    np.testing.assert_allclose(robot.parameter("gravity"), [0.0, 0.0, -9.81])
    pose = np.eye(4)
    pose[0, 3] = 1.0
    np.testing.assert_allclose(robot.parameter("joint2.placement"), pose, atol=1e-15)


@pytest.mark.parametrize("name", ["fixed", "floating", "mimic"])
def test_shapes_and_values(name: str) -> None:
    """Links without inertia have mass zero and center zero, and values are those of the robot."""
    robot = robot_of(name)
    shapes = {"mass": (), "center": (3,), "inertia": (3, 3), "placement": (4, 4), "gravity": (3,)}
    for parameter in all_names(robot):
        value = robot.parameter(parameter)
        assert value.shape == shapes[parameter.rpartition(".")[2]]
        assert value.dtype == np.float64
        value[...] = 7.0  # a copy, so the robot does not change
        assert not np.array_equal(robot.parameter(parameter), value)
    assert sum(robot.parameter(f"{n}.mass") for n in robot.bodies) == pytest.approx(robot.mass)
    for link in robot.model.source.links:
        m, c = robot.parameter(f"{link.name}.mass"), robot.parameter(f"{link.name}.center")
        np.testing.assert_allclose(m * c, list(link.inertia.h), atol=1e-14)
        I = robot.parameter(f"{link.name}.inertia")
        assert np.array_equal(I, I.T)
        np.testing.assert_allclose(
            I + m * (c @ c * np.eye(3) - np.outer(c, c)), link.inertia.I.matrix().rows, atol=1e-14
        )
    for joint in robot.model.source.joints:
        T = robot.parameter(f"{joint.name}.placement")
        np.testing.assert_allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3), atol=1e-14)
        assert np.array_equal(T[3], [0.0, 0.0, 0.0, 1.0])


@pytest.mark.parametrize(
    "name",
    [
        "",
        "mass",
        "bogus",
        "bogus.mass",
        "link1",
        "link1.",
        "link1.bogus",
        "link1.Mass",
        "joint1.mass",
        "link1.placement",
        "link1.gravity",
        "gravity.mass",
        ".mass",
        "tip.mass",
        " gravity",
    ],
)
def test_unknown_names(name: str) -> None:
    robot = planar(1)
    message = f"robot 'planar' has no parameter {name!r}; "
    for use in (
        lambda: robot.parameter(name),
        lambda: chasles.compile(robot, "mass_matrix", parameters=(name,)),
        lambda: chasles.compile(robot, "mass_matrix", parameters=("gravity", name)),
        lambda: robot.function("mass_matrix", parameters=[name]),
    ):
        with pytest.raises(chasles.ModelError) as found:
            use()
        assert message in str(found.value)


def test_a_derivative_by_something_that_is_no_parameter() -> None:
    robot = planar(1)
    with raises("E-CALL-034", "'gravity'"):
        chasles.compile(robot, "inverse_dynamics", wrt="gravity")
    with raises("E-CALL-034", "'link1.mass'"):
        chasles.compile(robot, "inverse_dynamics", parameters=("gravity",), wrt="link1.mass")


# Agreement with rebuilt robots -----------------------------------------------------------------


@pytest.mark.parametrize("function", FUNCTION_OPTIONS)
@pytest.mark.parametrize("name", ["fixed", "floating", "mimic"])
def test_the_robots_own_numbers_change_nothing(name: str, function: str) -> None:
    """Parameters with the robot's own values change nothing, even if all parameters are inputs."""
    robot = robot_of(name)
    compare(robot, function, {p: robot.parameter(p) for p in all_names(robot)})


@pytest.mark.parametrize("function", FUNCTION_OPTIONS)
@pytest.mark.parametrize("name", ["fixed", "floating", "mimic"])
def test_all_numbers_changed(name: str, function: str) -> None:
    robot, rng = robot_of(name), np.random.default_rng(2)
    compare(robot, function, {p: other(robot, p, rng) for p in all_names(robot)})


@pytest.mark.parametrize("name", ["fixed", "floating", "mimic"])
def test_one_number_changed(name: str) -> None:
    """Every second parameter is changed alone. Inverse dynamics depends on all of them."""
    robot, rng = robot_of(name), np.random.default_rng(3)
    for parameter in all_names(robot)[::2]:
        compare(robot, "inverse_dynamics", {parameter: other(robot, parameter, rng)})


@pytest.mark.parametrize("target", TARGETS)
def test_every_backend(target: str) -> None:
    robot, rng = planar(2), np.random.default_rng(4)
    names = ("link2.mass", "gravity", "joint2.placement", "link1.inertia", "link2.center")
    for function in FUNCTION_OPTIONS:
        compare(robot, function, {p: other(robot, p, rng) for p in names}, target)


def test_a_payload() -> None:
    """A payload agrees with an attached body, and has no effect if its mass is zero."""
    arm, rng = puma560(), np.random.default_rng(5)
    loaded = arm.attach("tool", mass=1.0, center=(0.1, 0.0, 0.2), name="load")
    names = ("load.mass", "load.center", "load.inertia")
    free = chasles.compile(loaded, "inverse_dynamics", backend="interpret", parameters=names)
    given = inputs(arm, "inverse_dynamics", 5)
    m, c = rng.uniform(1.0, 3.0), rng.uniform(-0.1, 0.1, 3)
    I = np.diag([0.02, 0.03, 0.04])
    attached = arm.attach("tool", mass=m, center=c, inertia=I)
    expected = chasles.compile(attached, "inverse_dynamics", backend="interpret")(*given)
    close(free(*given, m, c, I), expected, 1e-13)
    bare = chasles.compile(arm, "inverse_dynamics", backend="interpret")(*given)
    close(free(*given, 0.0, c, np.zeros((3, 3))), bare, 1e-13)


def test_another_field_of_gravity() -> None:
    arm = puma560()
    g = np.array([1.0, -2.0, 3.0])
    for function in ("gravity_forces", "potential_energy", "inverse_dynamics"):
        free = chasles.compile(arm, function, backend="interpret", parameters=("gravity",))
        plain = chasles.compile(arm.with_gravity(g), function, backend="interpret")
        given = inputs(arm, function, 6)
        close(free(*given, g), plain(*given), 1e-13)
    still = chasles.compile(arm, "gravity_forces", backend="interpret", parameters=("gravity",))
    assert np.array_equal(still(np.zeros(6), np.zeros(3)), np.zeros(6))


def test_forces_are_linear_in_masses() -> None:
    """Torques are affine in a link's mass with fixed center, and in its inertia."""
    robot = robot_of("fixed")
    given = inputs(robot, "inverse_dynamics", 7)
    for name, a, b in (
        ("link2.mass", np.array(0.5), np.array(2.5)),
        ("link3.inertia", np.eye(3), np.diag([1.0, 2.0, 3.0])),
    ):
        free = chasles.compile(robot, "inverse_dynamics", backend="interpret", parameters=(name,))
        middle = free(*given, (a + b) / 2.0)
        close((free(*given, a) + free(*given, b)) / 2.0, middle, 1e-13)


def test_an_inertia_counts_by_its_symmetric_part() -> None:
    robot, rng = planar(2), np.random.default_rng(8)
    free = chasles.compile(robot, "mass_matrix", backend="interpret", parameters=("link2.inertia",))
    I = rng.normal(size=(3, 3))
    q = inputs(robot, "mass_matrix", 8)[0]
    close(free(q, I), free(q, (I + I.T) / 2.0), 1e-13)


# Parameters as inputs --------------------------------------------------------------------------


def test_they_come_last_in_the_order_asked_for() -> None:
    """Parameters come after all arrays and forces. A name given twice is one input."""
    robot = planar(2)
    F = {"tip": chasles.Wrench(np.arange(6.0))}
    compiled = chasles.compile(
        robot,
        "inverse_dynamics",
        backend="interpret",
        f_ext=F,
        parameters=["link2.mass", "gravity", "link2.mass"],
    )
    names = [v.name for v in compiled.interface.inputs]
    assert names == ["q", "qd", "qdd", "f_ext['tip']", "link2.mass", "gravity"]
    given = inputs(robot, "inverse_dynamics", 9)
    found = compiled(*given, np.arange(6.0), 2.0, [0.0, 0.0, -5.0])
    changed = rebuilt(robot, {"link2.mass": np.array(2.0), "gravity": np.array([0.0, 0.0, -5.0])})
    expected = chasles.compile(changed, "inverse_dynamics", backend="interpret", f_ext=F)
    close(found, expected(*given, np.arange(6.0)), 1e-13)


def test_they_have_batches() -> None:
    """Rows of parameters match rows of states, or broadcast with them, in machine code."""
    robot, rng = planar(2), np.random.default_rng(10)
    names = ("link2.mass", "gravity", "joint2.placement")
    compiled = chasles.compile(robot, "inverse_dynamics", parameters=names)
    given = inputs(robot, "inverse_dynamics", 10, 20)
    rows = [np.stack([other(robot, name, rng) for _ in range(20)]) for name in names]
    assert [a.shape for a in rows] == [(20,), (20, 3), (20, 4, 4)]
    many = compiled(*given, *rows)
    assert many.shape == (20, 2)
    for k in range(20):
        alone = compiled(*(a[k] for a in given), *(a[k] for a in rows))
        assert np.array_equal(alone, many[k])
    assert np.array_equal(compiled.fast(*given, *rows), many)
    row = [a[3] for a in given]
    masses = compiled(*row, rows[0], rows[1][3], rows[2][3])
    assert masses.shape == (20, 2)
    assert np.array_equal(masses[3], many[3])
    grid = compiled(*(a[:, None] for a in given), rows[0], rows[1][3], rows[2][3])
    assert grid.shape == (20, 20, 2)
    assert np.array_equal(grid[3], masses)


def test_they_are_checked() -> None:
    robot = planar(2)
    compiled = chasles.compile(robot, "gravity_forces", parameters=("link1.inertia", "link2.mass"))
    q, I = np.zeros(2), np.eye(3)
    with raises("E-CALL-035"):
        compiled(q)
    with raises("E-CALL-009", "(..., 3, 3)"):
        compiled(q, np.zeros(9), 1.0)
    with raises("E-CALL-008"):
        compiled(q, I, "heavy")
    with raises("E-CALL-005"):
        compiled(np.zeros((2, 2)), I, np.ones(3))


def test_they_survive_pickling() -> None:
    robot = planar(2)
    compiled = chasles.compile(robot, "gravity_forces", parameters=("gravity",))
    again = pickle.loads(pickle.dumps(compiled))
    q, g = np.array([0.3, 0.4]), np.array([1.0, 2.0, 3.0])
    assert np.array_equal(again(q, g), compiled(q, g))
    assert np.array_equal(pickle.loads(pickle.dumps(compiled.fast))(q, g), compiled(q, g))


def test_in_single_precision() -> None:
    robot = planar(2)
    compiled = chasles.compile(robot, "gravity_forces", parameters=("link2.mass",))
    q, m = np.array([0.3, 0.4]), np.array(2.0)
    single = compiled(q.astype(np.float32), m.astype(np.float32))
    assert single.dtype == np.float32
    close(single, compiled(q, m), 1e-6)


# Derivatives -----------------------------------------------------------------------------------


def differences(function: Callable[[np.ndarray], np.ndarray], at: np.ndarray) -> np.ndarray:
    """Return fourth-order central differences with respect to each entry of an array."""
    unit = np.eye(at.size).reshape(-1, *at.shape)
    steps = STEP * np.multiply.outer([-2.0, -1.0, 1.0, 2.0], unit)
    values = function(at + steps)
    total = np.tensordot([1.0, -8.0, 8.0, -1.0], values, axes=1) / (12.0 * STEP)
    return np.moveaxis(total, 0, -1).reshape((*values.shape[2:], *at.shape))


@pytest.mark.parametrize("function", FUNCTION_OPTIONS)
@pytest.mark.parametrize("name", ["fixed", "floating", "mimic"])
def test_derivatives_by_parameters(name: str, function: str) -> None:
    """Derivatives agree with differences for all parameter types, on moving and fixed joints."""
    robot, rng = robot_of(name), np.random.default_rng(11)
    fixed = next(j.name for j in robot.model.source.joints if j.kind == "fixed")
    names = ("link2.mass", "link2.center", "link2.inertia", "gravity")
    names += ("joint2.placement", f"{fixed}.placement")
    options = FUNCTION_OPTIONS[function]
    plain, derived = (
        chasles.compile(robot, function, backend=backend, parameters=names, wrt=wrt, **options)
        for backend, wrt in (("numpy", None), ("interpret", names))
    )
    given = inputs(robot, function, 11)
    values = [other(robot, p, rng) for p in names]
    size = max(float(np.max(np.abs(plain(*given, *values)))), 1e-3)
    for k, (parameter, D) in enumerate(zip(names, derived(*given, *values), strict=True)):

        def along(value: np.ndarray, k: int = k) -> np.ndarray:
            return plain(*given, *values[:k], value, *values[k + 1 :])

        assert np.all(np.isfinite(D)), parameter
        close(D, differences(along, values[k]), SLACK, scale=size)


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
def test_derivatives_by_states_beside_parameters(function: str) -> None:
    """Derivatives by states and parameters can be requested in one call, in any order."""
    robot, rng = robot_of("fixed"), np.random.default_rng(12)
    names = ("link2.mass", "joint2.placement")
    given = inputs(robot, function, 12)
    values = {p: other(robot, p, rng) for p in names}
    changed = rebuilt(robot, values)
    states = [n for n in signature(FUNCTIONS[function][0].algorithm).inputs if n != "f_ext"]
    wrt = ("link2.mass", *reversed(states), "joint2.placement")
    free = chasles.compile(robot, function, backend="interpret", parameters=names, wrt=wrt)
    found = dict(zip(wrt, free(*given, *values.values()), strict=True))
    plain = chasles.compile(changed, function, backend="interpret", wrt=states)(*given)
    for name, expected in zip(states, plain, strict=True):
        close(found[name], expected, 1e-10)
    only = chasles.compile(robot, function, backend="interpret", parameters=names, wrt=names)
    for name, a in zip(names, only(*given, *values.values()), strict=True):
        close(found[name], a, 1e-12)
    states_only = chasles.compile(
        robot, function, backend="interpret", parameters=names, wrt=states
    )
    for name, a in zip(states, states_only(*given, *values.values()), strict=True):
        close(found[name], a, 1e-10)


def test_derivatives_by_batches_of_parameters() -> None:
    """Machine code computes derivatives for batches of parameters."""
    robot = planar(2)
    derived = chasles.compile(
        robot, "gravity_forces", parameters=("gravity", "link2.mass"), wrt=("q", "link2.mass")
    )
    q = inputs(robot, "gravity_forces", 13, 9)[0]
    m = np.linspace(0.5, 2.0, 9)
    dq, dm = derived(q, robot.gravity, m)
    assert (dq.shape, dm.shape) == ((9, 2, 2), (9, 2))
    for k in range(9):
        one = derived(q[k], robot.gravity, m[k])
        assert np.array_equal(one[0], dq[k])
        assert np.array_equal(one[1], dm[k])
    by_mass = chasles.compile(robot, "gravity_forces", parameters=("link2.mass",), wrt="link2.mass")
    close(by_mass(q, m), dm, 1e-13)
