"""Derivatives of all public functions, compared with differences.

Derivatives with respect to a configuration are taken along `integrate`, and so are the differences.
The interpreter runs most programs, because it needs no compilation.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from support import CUBIC, close, raises, state, tree, ways

import chasles
from chasles import backends
from chasles.algorithms import DERIVATIVES, FUNCTIONS
from chasles.backends import arrays
from chasles.functions.derivatives import all_derivatives
from chasles.functions.programs import Derivative, program
from chasles.functions.tracing import signature
from chasles.model import JOINTS
from chasles.model.spaces import PositionSpace, WrenchesSpace
from chasles.robots import planar, puma560, quadruped, random_tree

KINDS = (
    ("free", "revolute"),
    ("spherical", "prismatic"),
    ("planar", "continuous", "helical"),
    ("universal", "cylindrical"),
    ("rack_and_pinion", "yaw_pitch_roll"),
    ("sphere_in_cylinder", "rolling"),
)
"""Joint types of small trees, which together include all types."""

STEP = 1e-3
SLACK = 2e-9
"""Relative tolerance. Fourth-order differences with this step have a rounding error of about 1e-11
and a truncation error of 1e-13 times the fifth derivative.
"""

SIGNATURES = {name: signature(rows[0].algorithm) for name, rows in FUNCTIONS.items()}

ONE = [
    name
    for name, sign in SIGNATURES.items()
    if len(sign.outputs) == 1 and not {"multipliers", "ctrl"} & set(sign.inputs)
]
"""Functions with one result, which have derivatives. Functions of loop forces are omitted, because
the robots are trees. Functions of controls need actuators and are tested in
`formats/test_machine_compiled.py`.
"""


def test_all_joint_types_are_there() -> None:
    assert {kind for kinds in KINDS for kind in kinds} == set(JOINTS)


@cache
def small(kinds: tuple[str, ...], seed: int = 7) -> chasles.Robot:
    """Return a tree whose moving joints have these types. The first joint carries the others."""
    source = random_tree(len(kinds), seed, floating=False).model.source
    left = list(kinds)
    joints = []
    for joint in source.joints:
        if joint.kind != "fixed":
            kind = left.pop(0)
            pitch = 0.1 if kind == "helical" else 0.0
            joint = replace(joint, kind=kind, pitch=pitch, radius=0.15, second_axis=None)
        joints.append(joint)
    return chasles.Robot(replace(source, joints=tuple(joints)))


def spaces(function: str) -> dict[str, Any]:
    """Return the arrays that a function takes."""
    inputs = signature(FUNCTIONS[function][0].algorithm).inputs
    return {name: s for name, s in inputs.items() if not isinstance(s, WrenchesSpace)}


def options(function: str) -> dict[str, Any]:
    """Return the options that a function requires."""
    known = signature(FUNCTIONS[function][0].algorithm).options
    chosen = {"frame": "tip", "at": (0.1, -0.2, 0.3)} if "frame" in known else {}
    return {name: value for name, value in chosen.items() if name in known}


def point(robot: chasles.Robot, function: str, seed: int) -> list[np.ndarray]:
    """Return random arguments. Two configurations are close to each other."""
    rng = np.random.default_rng(seed)
    values: list[np.ndarray] = []
    for space in spaces(function).values():
        if not isinstance(space, PositionSpace):
            values.append(rng.normal(size=robot.nv))
        elif values:
            step = chasles.compile(robot, "integrate", backend="numpy")
            values.append(step(values[0], 0.5 * rng.normal(size=robot.nv)))
        else:
            values.append(robot.random(rng))
    return values


def rest(robot: chasles.Robot, function: str) -> list[np.ndarray]:
    """Return the neutral configuration at rest, where roots and quotients could be 0/0."""
    return [
        robot.neutral() if isinstance(space, PositionSpace) else np.zeros(robot.nv)
        for space in spaces(function).values()
    ]


def differences(
    robot: chasles.Robot,
    function: Callable[..., np.ndarray],
    at: Sequence[np.ndarray],
    k: int,
    moves: bool,
) -> np.ndarray:
    """Return fourth-order central differences by argument k, with one column per direction.

    moves: True if the argument is a configuration, which moves along `integrate`.
    """
    shape = (robot.nv,) if moves else at[k].shape
    unit = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    steps = STEP * np.multiply.outer([-2.0, -1.0, 1.0, 2.0], unit)
    given = list(at)
    if moves:
        given[k] = chasles.compile(robot, "integrate", backend="numpy")(at[k], steps)
    else:
        given[k] = at[k] + steps
    values = function(*given)
    total = np.tensordot([1.0, -8.0, 8.0, -1.0], values, axes=1) / (12.0 * STEP)
    return np.moveaxis(total, 0, -1).reshape((*values.shape[2:], *shape))


def check(
    robot: chasles.Robot,
    function: str,
    at: Sequence[np.ndarray],
    /,
    *,
    forces: Sequence[np.ndarray] = (),
    **chosen: Any,
) -> None:
    """Compare the interpreter's derivatives by every argument with differences."""
    compiled = chasles.compile(robot, function, backend="numpy", **chosen)
    names = list(spaces(function))
    derived = chasles.compile(robot, function, backend="interpret", wrt=names, **chosen)

    def plain(*arrays: np.ndarray) -> np.ndarray:
        return compiled(*arrays, *forces)

    found, positions = derived(*at, *forces), frozenset({"q", "q0", "q1"})
    size = max(float(np.max(np.abs(plain(*at)), initial=0.0)), 1e-3)
    for k, (name, D) in enumerate(zip(names, found if len(names) > 1 else (found,), strict=True)):
        assert np.all(np.isfinite(D)), name
        close(D, differences(robot, plain, at, k, name in positions), SLACK, scale=size)


# Every function, every joint type --------------------------------------------------------------


@pytest.mark.parametrize("function", ONE)
@pytest.mark.parametrize("kinds", KINDS, ids=" ".join)
def test_every_function(kinds: tuple[str, ...], function: str) -> None:
    """Derivatives agree with differences at a random state and at rest (`rest`)."""
    robot = small(kinds)
    check(robot, function, point(robot, function, 1), **options(function))
    if function != "difference":
        check(robot, function, rest(robot, function), **options(function))


@pytest.mark.parametrize("kinds", KINDS, ids=" ".join)
def test_the_difference_of_a_configuration_from_itself(kinds: tuple[str, ...]) -> None:
    """The difference grows with the second configuration and shrinks with the first."""
    robot = small(kinds)
    derived = chasles.compile(robot, "difference", backend="interpret", wrt=("q0", "q1"))
    for q in (robot.neutral(), robot.random(seed=3)):
        first, second = derived(q, q)
        close(first, -np.eye(robot.nv), 1e-14)
        close(second, np.eye(robot.nv), 1e-14)


@pytest.mark.parametrize("function", ONE)
def test_an_arm(function: str) -> None:
    robot = puma560()
    chosen = options(function) | ({"frame": "tool"} if options(function) else {})
    check(robot, function, point(robot, function, 2), **chosen)


@pytest.mark.parametrize(
    "function",
    [
        "inverse_dynamics",
        "forward_dynamics",
        "gravity_forces",
        "jacobian",
        "frame_acceleration",
        "kinetic_energy",
        "potential_energy",
        "momentum",
        "center_of_mass",
        "integrate",
    ],
)
def test_a_quadruped(function: str) -> None:
    robot = quadruped()
    frame = {"frame": "front_left_foot"} if options(function) else {}
    check(robot, function, point(robot, function, 3), **frame)


@pytest.mark.parametrize("axes", ["world", "frame"])
@pytest.mark.parametrize("at", ["frame", "world"])
def test_every_view_of_a_frame(axes: str, at: str) -> None:
    robot = small(("spherical",))
    view = {"frame": "tip", "axes": axes, "at": at}
    for function in ("frame_velocity", "jacobian", "jacobian_rate"):
        check(robot, function, point(robot, function, 4), **view)
    for kind in ("spatial", "proper"):
        at_state = point(robot, "frame_acceleration", 4)
        check(robot, "frame_acceleration", at_state, kind=kind, **view)


# Dissipation, external forces and methods ------------------------------------------------------

DYNAMICS = {"inverse_dynamics": ("q", "qd", "qdd"), "forward_dynamics": ("q", "qd", "tau")}


@pytest.mark.parametrize("function", DYNAMICS)
@pytest.mark.parametrize("kinds", KINDS, ids=" ".join)
def test_with_dissipation(kinds: tuple[str, ...], function: str) -> None:
    """Damping adds to the derivative by velocity, and dry friction does not."""
    robot = small(kinds)
    check(robot, function, point(robot, function, 5), dissipation=True)
    damped, plain = (
        chasles.compile(
            robot, "inverse_dynamics", backend="interpret", wrt="qd", dissipation=dissipation
        )(*point(robot, "inverse_dynamics", 5))
        for dissipation in (True, False)
    )
    damping = np.zeros(robot.nv)
    for name in robot.joints:
        damping[robot.velocity_slice(name)] = robot.joint(name).damping
    assert np.any(damping > 0.0)
    close(damped - plain, np.diag(damping), 1e-13, scale=float(np.max(np.abs(plain))))


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics", "bias_forces"])
@pytest.mark.parametrize("axes", ["world", "frame"])
def test_with_external_forces(function: str, axes: str) -> None:
    """External forces stay constant while the robot moves."""
    robot = small(("free", "revolute"))
    rng = np.random.default_rng(6)
    f_ext = {name: chasles.Wrench(rng.normal(size=6), axes=axes) for name in ("link2", "tip")}
    forces = [f_ext[name].value for name in sorted(f_ext)]
    check(robot, function, point(robot, function, 6), forces=forces, f_ext=f_ext)


@pytest.mark.parametrize("function", [*DYNAMICS, "mass_matrix", "kinetic_energy", "jacobian"])
def test_with_mimic_joints(function: str) -> None:
    """The column of a leader includes the contributions of its followers."""
    robot = tree(6, 3, floating=False, mimics=True)
    assert len(robot.moving_joints) > len(robot.joints)
    check(robot, function, point(robot, function, 7), **options(function))


@pytest.mark.parametrize(
    ("kinds", "steep"), [(("spherical", "helical"), False), (("revolute", "helical"), True)]
)
def test_named_methods(kinds: tuple[str, ...], steep: bool) -> None:
    """Derivatives of all methods agree. Methods of cubic cost are tested on the smaller robot."""
    robot = small(kinds)
    for function, rows in FUNCTIONS.items():
        methods = [m for m in ways(robot, function, smooth=True) if (m in CUBIC) == steep]
        if len(rows) > 1 and function in ONE and methods:
            at = point(robot, function, 8)
            chosen = options(function) | {"wrt": list(spaces(function)), "backend": "interpret"}
            found = [
                chasles.compile(robot, function, method=way, **chosen)(*at)
                for way in ("fastest", *methods)
            ]
            for other in found[1:]:
                pair = (x if isinstance(x, tuple) else (x,) for x in (other, found[0]))
                for a, b in zip(*pair, strict=True):
                    close(a, b, 1e-11)


# Recursions and derivatives of programs --------------------------------------------------------


def plain_derivative(robot: chasles.Robot, function: str) -> Any:
    """Return the derivative of the program itself, even if there is a recursion."""
    positions = frozenset({"q", "q0", "q1"})
    traced = program(robot.model, function)
    return all_derivatives(robot.model, traced, DYNAMICS[function], positions)


def run(traced: Any, at: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run a program on one state with the interpreter."""
    found = arrays.call(backends.compile(traced, "interpret"), traced.name, at)
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("function", DYNAMICS)
@pytest.mark.parametrize(
    "make",
    [
        puma560,
        *(lambda kinds=kinds: small(kinds) for kinds in KINDS),
        lambda: tree(6, 3, floating=False, mimics=True),
    ],
    ids=["puma560", *map(" ".join, KINDS), "mimic"],
)
def test_recursions_agree_with_the_graph(make: Callable[[], chasles.Robot], function: str) -> None:
    """Recursive derivatives agree with derivatives of the program.

    Universal joints, whose motion subspace varies, have no recursion, so both are then the same.
    """
    robot = make()
    at = point(robot, function, 9)
    derivative = Derivative("jacobian", DYNAMICS[function])
    recursion = program(robot.model, function, derivative=derivative)
    graph = plain_derivative(robot, function)
    assert [v.name for v in recursion.outputs] == [v.name for v in graph.outputs]
    assert [v.shape for v in recursion.outputs] == [v.shape for v in graph.outputs]
    size = np.max(np.abs(run(program(robot.model, function), at)[0]))
    for a, b in zip(run(recursion, at), run(graph, at), strict=True):
        close(a, b, 1e-11, scale=float(size))


def test_recursions_count_fewer_operations() -> None:
    """Recursive derivatives need fewer operations than derivatives of the program."""
    assert set(DERIVATIVES) == set(DYNAMICS)
    for robot in (puma560(), quadruped()):
        for function, names in DYNAMICS.items():
            if robot.nv > 6 and function == "forward_dynamics":
                continue  # the ratio is known to be 1.6, and reverse mode is slow to trace
            derivative = Derivative("jacobian", names)
            recursion = program(robot.model, function, derivative=derivative).count.weight
            graph = plain_derivative(robot, function).count.weight
            print(f"{robot.name} {function}: recursion {recursion}, graph {graph}")
            assert recursion < graph


# Pullbacks of covectors ------------------------------------------------------------------------


@pytest.mark.parametrize("function", ONE)
def test_pullback_is_the_transposed_derivative(function: str) -> None:
    robot = small(KINDS[0])
    names = tuple(spaces(function))
    ways = {
        kind: robot.function(
            function, backend="interpret", derivative=Derivative(kind, names), **options(function)
        )
        for kind in ("jacobian", "pullback")
    }
    at = point(robot, function, 10)
    derivatives = ways["jacobian"](*at)
    derivatives = derivatives if len(names) > 1 else (derivatives,)
    shape = derivatives[0].shape[:-1]
    covector = np.random.default_rng(10).normal(size=shape)
    pulled = ways["pullback"](*at, covector)
    for a, D in zip(pulled if len(names) > 1 else (pulled,), derivatives, strict=True):
        expected = np.tensordot(covector, D, axes=len(shape))
        close(a, expected, 1e-11, scale=float(np.max(np.abs(D), initial=0.0)))


def test_pullback_in_public() -> None:
    """Pullbacks by machine code are correct for batches, some arguments, forces and options."""
    robot = planar(2)
    q, qd, qdd = state(robot, 11, 5)
    w = np.random.default_rng(11).normal(size=(5, 2))
    J = robot.derivatives("inverse_dynamics", q, qd, qdd)
    pulled = robot.pullback("inverse_dynamics", q, qd, qdd, covector=w)
    for a, D in zip(pulled, J, strict=True):
        np.testing.assert_allclose(a, np.einsum("ki,kij->kj", w, D), rtol=1e-12, atol=1e-12)
    only = robot.pullback("inverse_dynamics", q, qd, qdd, covector=w, wrt="qd")
    np.testing.assert_allclose(only, pulled[1], rtol=1e-12)
    swapped = robot.pullback("inverse_dynamics", q, qd, qdd, covector=w, wrt=("qdd", "q"))
    np.testing.assert_allclose(swapped[0], pulled[2], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(swapped[1], pulled[0], rtol=1e-12, atol=1e-12)
    energy = robot.pullback("potential_energy", q, covector=np.ones(5))
    np.testing.assert_allclose(energy, robot.gravity_forces(q), rtol=1e-12, atol=1e-12)
    F = {"tip": np.arange(6.0)}
    pushed = robot.pullback("inverse_dynamics", q, qd, qdd, covector=w, wrt="q", f_ext=F)
    D = robot.derivatives("inverse_dynamics", q, qd, qdd, wrt="q", f_ext=F)
    np.testing.assert_allclose(pushed, np.einsum("ki,kij->kj", w, D), rtol=1e-12, atol=1e-12)
    with raises("E-CALL-009", "(..., 2)"):
        robot.pullback("inverse_dynamics", q, qd, qdd, covector=np.ones(3))


# Physics ---------------------------------------------------------------------------------------


def test_energies_and_forces() -> None:
    """Gravity forces are the gradient of potential energy, and momentum that of kinetic energy."""
    for robot in (small(KINDS[0]), small(KINDS[1]), puma560()):
        q, qd, _ = state(robot, 12)

        def derived(function: str, wrt: str, *at: np.ndarray, robot: Any = robot) -> np.ndarray:
            return chasles.compile(robot, function, backend="interpret", wrt=wrt)(*at)

        plain = {
            name: chasles.compile(robot, name, backend="interpret")
            for name in ("gravity_forces", "mass_matrix")
        }
        close(derived("potential_energy", "q", q), plain["gravity_forces"](q), 1e-12)
        close(derived("kinetic_energy", "qd", q, qd), plain["mass_matrix"](q) @ qd, 1e-12)


def test_forward_and_inverse_dynamics_undo_each_other() -> None:
    """Derivatives satisfy d qdd = -M^-1 d tau at the same accelerations."""
    robot = small(KINDS[1])
    q, qd, tau = state(robot, 13)
    forward = chasles.compile(robot, "forward_dynamics", backend="interpret")
    qdd = forward(q, qd, tau)
    by_force = chasles.compile(
        robot, "forward_dynamics", backend="interpret", wrt=DYNAMICS["forward_dynamics"]
    )(q, qd, tau)
    by_acceleration = chasles.compile(
        robot, "inverse_dynamics", backend="interpret", wrt=DYNAMICS["inverse_dynamics"]
    )(q, qd, qdd)
    M = by_acceleration[2]
    close(M @ by_force[2], np.eye(robot.nv), 1e-10)
    for k in (0, 1):
        close(M @ by_force[k], -by_acceleration[k], 1e-10)


# Second derivatives ----------------------------------------------------------------------------


@pytest.mark.parametrize("function", DYNAMICS)
@pytest.mark.parametrize(
    "make",
    [lambda: planar(2), lambda: small(("revolute", "helical")), lambda: small(("spherical",))],
    ids=["planar", "revolute helical", "spherical"],
)
def test_second_derivatives(make: Callable[[], chasles.Robot], function: str) -> None:
    """Second derivatives agree with differences for all pairs of arguments, even at rest."""
    robot = make()
    names = DYNAMICS[function]
    first, second = (
        robot.function(function, backend="interpret", derivative=Derivative("jacobian", names, k))
        for k in (1, 2)
    )
    labels = [v.name for v in second.interface.outputs]
    assert labels == [f"d_d_result_d_{a}_d_{b}" for a in names for b in names]
    for at in (point(robot, function, 14), rest(robot, function)):
        H = second(*at)
        size = max(float(np.max(np.abs(D))) for D in first(*at))
        for (i, j), found in zip(itertools.product(range(3), range(3)), H, strict=True):
            expected = differences(robot, lambda *a, i=i: first(*a)[i], at, j, names[j] == "q")
            assert found.shape == (robot.nv,) * 3
            assert np.all(np.isfinite(found))
            close(found, expected, SLACK, scale=size)


@pytest.mark.parametrize("function", DYNAMICS)
def test_second_derivatives_of_an_arm_are_symmetric(function: str) -> None:
    """Steps of an arm's joints commute, so the order of differentiation does not matter."""
    robot = small(("revolute", "helical"))
    names = DYNAMICS[function]
    second = robot.function(
        function, backend="interpret", derivative=Derivative("jacobian", names, 2)
    )
    H = dict(zip(itertools.product(names, names), second(*point(robot, function, 15)), strict=True))
    size = max(float(np.max(np.abs(a))) for a in H.values())
    for a, b in itertools.product(names, names):
        close(H[a, b], np.swapaxes(H[b, a], -1, -2), 1e-11, scale=size)


def test_second_derivatives_of_a_rotation_have_its_commutator() -> None:
    """Rotations about two axes in either order differ by a rotation about their cross product."""
    robot = small(("spherical",))
    q = robot.random(seed=16)
    first, second = (
        robot.function(
            "potential_energy", backend="interpret", derivative=Derivative("jacobian", ("q",), k)
        )(q)
        for k in (1, 2)
    )
    for i, j in itertools.product(range(3), range(3)):
        turn = np.cross(np.eye(3)[j], np.eye(3)[i])
        close(second[i, j] - second[j, i], first @ turn, 1e-12, scale=float(np.max(np.abs(first))))


def test_second_derivatives_in_public() -> None:
    robot = planar(2)
    q, qd, qdd = state(robot, 17, 3)
    H = robot.derivatives("inverse_dynamics", q, qd, qdd, wrt=("q", "qd"), order=2)
    assert [a.shape for a in H] == [(3, 2, 2, 2)] * 4
    alone = robot.derivatives("inverse_dynamics", q, qd, qdd, wrt="q", order=2)
    np.testing.assert_allclose(alone, H[0], rtol=1e-12, atol=1e-12)


def test_second_derivatives_of_steps_are_finite_at_rest() -> None:
    """Exponentials and logarithms use their series where the angle is zero."""
    for kind, function in (("free", "integrate"), ("spherical", "difference")):
        robot, names = small((kind,)), tuple(spaces(function))
        second = robot.function(
            function, backend="interpret", derivative=Derivative("jacobian", names, 2)
        )
        assert all(np.all(np.isfinite(a)) for a in second(*rest(robot, function))), kind


# Choice of arguments ---------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics", "momentum"])
@pytest.mark.parametrize("kinds", [("revolute", "prismatic"), ("universal",)], ids=" ".join)
def test_any_choice_of_arguments(function: str, kinds: tuple[str, ...]) -> None:
    """Derivatives are returned in the order of `wrt`, as a tuple, or as an array for one name."""
    robot = small(kinds)
    names = list(spaces(function))
    at = point(robot, function, 18)

    def derived(wrt: Any) -> Any:
        return chasles.compile(robot, function, backend="interpret", wrt=wrt)(*at)

    each = dict(zip(names, derived(names), strict=True))
    for count in range(1, len(names) + 1):
        for chosen in itertools.permutations(names, count):
            found = derived(chosen)
            found = found if count > 1 else (found,)
            for name, a in zip(chosen, found, strict=True):
                close(a, each[name], 1e-12)
    for name in names:
        assert isinstance(derived(name), np.ndarray)
        close(derived([name, name]), each[name], 1e-12)


def test_options_do_not_get_mixed_up() -> None:
    """The public method caches compiled derivatives correctly for options in any order."""
    robot = planar(2)
    q = point(robot, "jacobian", 21)[0]
    views = [{"axes": "frame"}, {"at": "frame"}, {"at": "world"}, {"axes": "world"}]
    views += [{"at": "world", "axes": "frame"}, {"axes": "frame", "at": "world"}]
    for _ in range(2):
        for view in views:
            expected = chasles.compile(robot, "jacobian", wrt="q", frame="tip", **view)(q)
            for given in ({"frame": "tip", **view}, {**view, "frame": "tip"}):
                assert np.array_equal(robot.derivatives("jacobian", q, **given), expected)
        for wrt in ("qd", ("qd",), ["qd"]):
            found = robot.derivatives("kinetic_energy", q, q, wrt=wrt)
            np.testing.assert_allclose(found, robot.mass_matrix(q) @ q, rtol=1e-12)
        both = robot.derivatives("kinetic_energy", q, q, wrt=("qd", "q"))
        np.testing.assert_allclose(both[0], robot.mass_matrix(q) @ q, rtol=1e-12)
        damped = robot.derivatives("inverse_dynamics", q, q, q, wrt="qd", dissipation=True)
        assert damped.shape == (2, 2)


def test_equal_options_of_other_types_are_refused_after_a_valid_call() -> None:
    """The cache of functions does not confuse True with 1, although both are equal."""
    for make in (planar, lambda n: planar(n).drive({"joint1": lambda t: 0.1 * t}).at_time(0.5)):
        robot = make(3)
        q, z = np.zeros(robot.nq), np.zeros(robot.nv)
        force = {"f_ext": {"tip": np.zeros(6)}}
        for packed, others in ((True, (1, np.True_, 1.0)), (False, (0, 0.0))):
            robot.mass_matrix(q, packed=packed)
            robot.mechanism.mass_matrix(q, packed=packed)
            for other in others:
                for given in (robot, robot.mechanism):
                    with raises("E-CALL-095"):
                        given.mass_matrix(q, packed=other)
        robot.derivatives("inverse_dynamics", q, z, z, wrt="q", order=1)
        for order in (True, 1.0, np.float64(1.0)):
            with raises("E-ROBOT-022"):
                robot.derivatives("inverse_dynamics", q, z, z, wrt="q", order=order)
        robot.mechanism.derivatives("mass_matrix", q, wrt="q", packed=True)
        with raises("E-CALL-095"):
            robot.mechanism.derivatives("mass_matrix", q, wrt="q", packed=1)
        assert robot.inverse_dynamics(q, z, z, **force).shape == (robot.nv,)


def test_shapes_and_outputs() -> None:
    robot = planar(2)
    q, qd, qdd = state(robot, 19, (4, 3))
    dq, dqd, dqdd = robot.derivatives("inverse_dynamics", q, qd, qdd)
    assert dq.shape == dqd.shape == dqdd.shape == (4, 3, 2, 2)
    np.testing.assert_allclose(dqdd, robot.mass_matrix(q), rtol=1e-13)
    outs = tuple(np.empty((4, 3, 2, 2)) for _ in range(3))
    found = robot.derivatives("inverse_dynamics", q, qd, qdd, out=outs)
    assert all(a is b for a, b in zip(found, outs, strict=True))
    assert np.array_equal(outs[0], dq)
    assert robot.derivatives("mass_matrix", q).shape == (4, 3, 2, 2, 2)
    assert robot.derivatives("potential_energy", q).shape == (4, 3, 2)
    assert robot.derivatives("jacobian", q, frame="tip").shape == (4, 3, 6, 2, 2)
    hessian = robot.derivatives("forward_kinematics", q[0, 0], frame="tip")
    assert hessian.shape == (4, 4, 2)
    single = robot.derivatives("potential_energy", q.astype(np.float32))
    assert single.dtype == np.float32


@pytest.mark.parametrize(
    ("function", "given", "error", "message"),
    [
        ("inverse_dynamics", {"wrt": "tau"}, ValueError, "E-CALL-034 'tau'"),
        ("forward_dynamics", {"wrt": ("q", "x")}, ValueError, "E-CALL-034 'x'"),
        ("inverse_dynamics", {"wrt": "f_ext"}, ValueError, "E-CALL-034 'f_ext'"),
        ("inverse_dynamics", {"wrt": "gravity"}, ValueError, "E-CALL-034 'gravity'"),
        ("nothing", {}, ValueError, "E-CALL-031 'nothing'"),
        ("ltdl_factors", {}, ValueError, "E-CALL-032"),
        ("jacobian", {"frame": 3}, TypeError, "E-MODEL-033"),
        ("inverse_dynamics", {"bogus": 1}, TypeError, "E-CALL-026 'bogus'"),
        ("inverse_dynamics", {"method": "bogus"}, ValueError, "E-CALL-068 'bogus'"),
        ("inverse_dynamics", {"order": 0}, ValueError, "E-ROBOT-022"),
        ("inverse_dynamics", {"order": 3}, ValueError, "E-ROBOT-022"),
        ("inverse_dynamics", {"order": 1.5}, ValueError, "E-ROBOT-022"),
        ("inverse_dynamics", {"wrt": ()}, ValueError, "E-CALL-033"),
    ],
)
def test_errors(function: str, given: dict[str, Any], error: type, message: str) -> None:
    robot = planar(1)
    q = np.zeros(1)
    count = len(spaces(function)) if function in FUNCTIONS else 1
    with raises(message, kind=error):
        robot.derivatives(function, *[q] * count, **given)
    if "order" not in given:
        with raises(message, kind=error):
            robot.pullback(function, *[q] * count, covector=q, **given)


def test_quaternions_are_checked() -> None:
    robot = tree(2, 4, floating=True)
    compiled = chasles.compile(robot, "inverse_dynamics", backend="numpy", wrt="q")
    q, qd, qdd = (a.copy() for a in state(robot, 20))
    q[:4] = 0.0
    with raises("E-CALL-037", "'joint1'"):
        compiled(q, qd, qdd)
