"""Models and coordinates of MuJoCo, and routes that call MuJoCo from Python."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple
from xml.etree import ElementTree

import mujoco
import numpy as np
from mujoco import rollout

import chasles
from benchmarks.robots import Case, path_of
from benchmarks.routes import Route
from benchmarks.states import Array, Coordinates, States

DISABLED = ("CONSTRAINT", "CONTACT", "ACTUATION", "DAMPER", "SPRING", "SENSOR", "EULERDAMP",
            "AUTORESET")  # fmt: skip
"""MuJoCo features that are disabled, because they are not part of rigid-body dynamics."""


def model(case: Case, robot: chasles.Robot) -> mujoco.MjModel:
    """Load the URDF file into MuJoCo, without shapes, and with locked joints fixed.

    A floating base gets a free joint. The time step is 1 s, so the change of velocity in a step
    equals the acceleration. Raise ValueError if MuJoCo cannot load the file.
    """
    root = ElementTree.parse(path_of(case)).getroot()
    for link in root.iter("link"):
        for shape in link.findall("visual") + link.findall("collision"):
            link.remove(shape)
    for joint in root.iter("joint"):
        if joint.get("name") in case.locked:
            joint.set("type", "fixed")
    if case.floating:
        free = robot.joint(robot.joints[0])
        ElementTree.SubElement(root, "link", name="benchmark_world")
        joint = ElementTree.SubElement(root, "joint", name=free.name, type="floating")
        ElementTree.SubElement(joint, "parent", link="benchmark_world")
        ElementTree.SubElement(joint, "child", link=free.child)
    made = mujoco.MjModel.from_xml_string(ElementTree.tostring(root, encoding="unicode"))
    for name in DISABLED:
        made.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{name}")
    made.opt.timestep = 1.0
    return made


def coordinates(robot: chasles.Robot, model: mujoco.MjModel, states: States) -> Coordinates:
    """Convert states to MuJoCo's coordinates; joints are matched by name.

    The linear velocity of a free joint comes first, along the axes of the world.
    """
    count = len(states.q)
    q, T = np.empty((count, model.nq)), np.zeros((count, model.nv, model.nv))
    b = np.zeros((count, model.nv))
    for name in robot.joints:
        joint = model.joint(name)
        at, row = int(joint.qposadr[0]), int(joint.dofadr[0])
        position, rates = states.q[:, robot.position_slice(name)], robot.velocity_slice(name)
        k = rates.start
        if position.shape[1] == 7:
            q[:, at : at + 7] = position[:, [4, 5, 6, 0, 1, 2, 3]]
            R = _rotations(position[:, :4])
            T[:, row : row + 3, k + 3 : k + 6] = R
            T[:, row + 3 : row + 6, k : k + 3] = np.eye(3)
            w, v = states.qd[:, k : k + 3], states.qd[:, k + 3 : k + 6]
            b[:, row : row + 3] = np.einsum("nij,nj->ni", R, np.cross(w, v))
        else:
            q[:, at], T[:, row, k] = position[:, 0], 1.0
    return Coordinates(q, T, b)


def _rotations(quaternion: Array) -> Array:
    """Return the rotation matrices (n, 3, 3) of unit quaternions (w, x, y, z)."""
    w, u = quaternion[:, 0, None, None], quaternion[:, 1:]
    cross = np.cross(u[:, None, :], np.eye(3)).swapaxes(1, 2)
    return np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross


def routes(
    model: mujoco.MjModel, function: str, states: States, theirs: Coordinates
) -> list[Route]:
    """Return routes: a Python loop over states and, for forward dynamics, MuJoCo's rollout."""
    data = mujoco.MjData(model)
    inputs = theirs.states(states).inputs(function)
    rows = list(zip(*inputs, strict=True))
    made = []
    for label, prepare in CALLS.get(function, {}).items():
        step = prepare(model, data)
        answers = partial(_returned, step, rows, function, theirs)
        made.append(Route("MuJoCo", label, False, len(rows), partial(_loop, step, rows), answers))
    if function == "forward_dynamics":
        made.append(_rollout(model, data, theirs, inputs))
    return made


class Step(NamedTuple):
    """Fields of MuJoCo's data for a state, the function to call, and the field of the result."""

    fields: tuple[Array, ...]
    call: Callable[[], None]
    result: Array


def _loop(step: Step, rows: Sequence[tuple[Array, ...]]) -> None:
    """Copy each row to MuJoCo's data, and call the function."""
    fields, call, _ = step
    for row in rows:
        for field, values in zip(fields, row, strict=True):
            field[:] = values
        call()


def _returned(
    step: Step, rows: Sequence[tuple[Array, ...]], function: str, theirs: Coordinates
) -> Array:
    """Return the results of all rows, in chasles' coordinates."""
    results = np.empty((len(rows), *step.result.shape))
    for k, row in enumerate(rows):
        _loop(step, [row])
        results[k] = step.result
    return theirs.result(function, results)


def _inverse(m: Any, d: Any) -> Step:
    return Step((d.qpos, d.qvel, d.qacc), partial(mujoco.mj_inverse, m, d), d.qfrc_inverse)


def _newton_euler(m: Any, d: Any) -> Step:
    """Return inverse dynamics as separate stages, without the additional work of `mj_inverse`."""
    result = np.empty(m.nv)

    def call() -> None:
        mujoco.mj_kinematics(m, d)
        mujoco.mj_comPos(m, d)
        mujoco.mj_comVel(m, d)
        mujoco.mj_rne(m, d, 1, result)

    return Step((d.qpos, d.qvel, d.qacc), call, result)


def _composite(m: Any, d: Any) -> Step:
    """Return the computation of the dense mass matrix; `mj_makeM` includes armature."""
    result = np.empty((m.nv, m.nv))

    def call() -> None:
        mujoco.mj_kinematics(m, d)
        mujoco.mj_comPos(m, d)
        mujoco.mj_makeM(m, d)
        mujoco.mj_fullM(m, d, result)

    return Step((d.qpos,), call, result)


def _forward(m: Any, d: Any) -> Step:
    return Step((d.qpos, d.qvel, d.qfrc_applied), partial(mujoco.mj_forward, m, d), d.qacc)


CALLS: dict[str, dict[str, Callable[[Any, Any], Step]]] = {
    "inverse_dynamics": {"mj_inverse": _inverse, "mj_rne": _newton_euler},
    "mass_matrix": {"mj_makeM": _composite},
    "forward_dynamics": {"mj_forward": _forward},
}
"""Functions that return the `Step` for a model and its data, by function and label."""


def _rollout(
    model: mujoco.MjModel, data: mujoco.MjData, theirs: Coordinates, inputs: list[Array]
) -> Route:
    """Return the route with one step of 1 s per state, including integration, in C++."""
    q, qd, tau = inputs
    start = np.hstack([np.zeros((len(q), 1)), q, qd])
    end = np.full((len(q), 1, start.shape[1]), np.nan)
    pool = rollout.Rollout(nthread=0)
    run = partial(
        pool.rollout,
        model,
        data,
        start,
        tau[:, None],
        control_spec=mujoco.mjtState.mjSTATE_QFRC_APPLIED.value,
        nstep=1,
        state=end,
    )

    def answers() -> Array:
        return theirs.result("forward_dynamics", end[:, 0, 1 + model.nq :] - qd)

    return Route("MuJoCo", "rollout", True, len(q), run, answers)
