"""Joint limits, actuators and keyframes of a robot."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from chasles.model import Model
from chasles.model.machine import ActuatorData, Interval


@dataclass(frozen=True, eq=False)
class Limits:
    """Joint limits, infinite for joints without a limit.

    `lower` and `upper` are positions (nq,) in rad or m. `velocity` (rad/s or m/s) and `effort` (N m
    or N) are the maximum absolute values (nv,).
    """

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class Actuators(tuple[str, ...]):
    """Actuator names in file order, with ranges (n, 2) of controls, forces and activations.

    Unlimited ranges are infinite. `active` contains the names of the actuators that have an
    activation state.
    """

    data: tuple[ActuatorData, ...]
    controls: np.ndarray
    forces: np.ndarray
    activations: np.ndarray
    active: tuple[str, ...]

    def __new__(cls, data: Iterable[ActuatorData]) -> "Actuators":
        """Create the actuators from their data."""
        given = tuple(data)
        made = super().__new__(cls, (each.name for each in given))
        made.data = given
        made.controls = _ranges(each.controls for each in given)
        made.forces = _ranges(each.forces for each in given)
        made.activations = _ranges(each.activations for each in given)
        made.active = tuple(each.name for each in given if each.active)
        return made


def _ranges(given: Iterable[Interval]) -> np.ndarray:
    return np.array(list(given), dtype=float).reshape(-1, 2)


class Keyframe(NamedTuple):
    """Named state of a robot: positions, velocities, controls and activations."""

    q: np.ndarray
    qd: np.ndarray
    ctrl: np.ndarray
    act: np.ndarray


def start(model: Model) -> np.ndarray:
    """Return the initial configuration (nq,), with neutral positions where none are given."""
    q = np.zeros(model.nq)
    for i, place in model.position_slices.items():
        body = model.bodies[i]
        own = body.data.start
        q[place] = own if len(own) == body.joint.nq else [float(x) for x in body.joint.neutral()]
    return q + 0.0


def keyframes(model: Model) -> Mapping[str, Keyframe]:
    """Return the keyframes. Positions default to the initial configuration, other values to 0."""
    actuators = model.source.actuators
    controls = {data.name: k for k, data in enumerate(actuators)}
    active = [data.name for data in actuators if data.active]
    joints = {model.bodies[i].data.name: i for i in model.movers}
    found = {}
    for key in model.source.keyframes:
        state = Keyframe(
            start(model), np.zeros(model.nv), np.zeros(len(actuators)), np.zeros(len(active))
        )
        for names, numbers, places in (
            (key.positions, state.q, model.position_slices),
            (key.velocities, state.qd, model.velocity_slices),
        ):
            for joint, entries in names:
                if joint in joints:
                    numbers[places[joints[joint]]] = entries
        for name, (x,) in key.controls:
            state.ctrl[controls[name]] = x
        for name, (x,) in key.activations:
            state.act[active.index(name)] = x
        found[key.name] = state
    return found
