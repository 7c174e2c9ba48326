"""The integrators by name: a table of Runge and Kutta, or a step of its own."""

from typing import NamedTuple, get_args

from chasles.errors import InputError, ModelError
from chasles.motion.contract import Machine
from chasles.motion.options import Free
from chasles.motion.steps.runge_kutta import (
    DORMAND_PRINCE,
    EULER,
    HEUN_2,
    HEUN_3,
    IMPLICIT_EULER,
    RUNGE_KUTTA_4,
    SDIRK_2,
    Table,
)
from chasles.motion.steps.semi_implicit import semi_implicit, semi_implicit_mixed
from chasles.motion.steps.system import Advance
from chasles.motion.steps.variational import variational


class Integrator(NamedTuple):
    """advance: a step. order: the power of dt with which the error falls at a given time.

    adaptive: it estimates its error, and chooses its steps. mixed: the step for free="mixed".
    hamiltonian: only for mechanisms that have a Hamiltonian in the coordinates of the tree.
    """

    advance: Advance
    order: int
    adaptive: bool = False
    mixed: Advance | None = None
    hamiltonian: bool = False

    @property
    def traced(self) -> bool:
        """Return True if its steps can be compiled: explicit ones of given length."""
        explicit = isinstance(self.advance, Table) and self.advance.explicit
        return not self.adaptive and (explicit or self.advance is semi_implicit)


INTEGRATORS = {
    "euler": Integrator(EULER, 1),
    "heun2": Integrator(HEUN_2, 2),
    "heun3": Integrator(HEUN_3, 3),
    "rk4": Integrator(RUNGE_KUTTA_4, 4),
    "dopri5": Integrator(DORMAND_PRINCE, 5, adaptive=True),
    "semi-implicit": Integrator(semi_implicit, 1, mixed=semi_implicit_mixed),
    "implicit-euler": Integrator(IMPLICIT_EULER, 1),
    "sdirk2": Integrator(SDIRK_2, 2),
    "variational": Integrator(variational, 2, hamiltonian=True),
}
"""Every integrator of `simulate`."""


def known(name: str) -> Integrator:
    """An integrator by its name."""
    if not isinstance(name, str) or name not in INTEGRATORS:
        names = ", ".join(map(repr, INTEGRATORS))
        problem = f"unknown integrator {name!r}"
        raise InputError("E-MOTION-046", problem, f"known are {names}", part="simulate")
    return INTEGRATORS[name]


def chosen(robot: Machine, name: str, free: Free) -> tuple[Integrator, Advance]:
    """An integrator and its step, if they suit the robot."""
    integrator = known(name)
    if free not in get_args(Free):
        problem = f"free must be 'body' or 'mixed', not {free!r}"
        raise InputError("E-MOTION-047", problem, part="simulate")
    if integrator.hamiltonian:
        _check_hamiltonian(robot, name)
    if free == "body":
        return integrator, integrator.advance
    if integrator.mixed is None:
        problem = f"free='mixed' is for integrator 'semi-implicit', not {name!r}"
        raise InputError("E-MOTION-075", problem, part="simulate")
    robot.mechanism.refuse_loops("simulate", "free='mixed' is for robots without loops")
    return integrator, integrator.mixed


def _check_hamiltonian(robot: Machine, name: str) -> None:
    """What takes its Hamiltonian from a mechanism, named.

    A rotor is an inertia along each freedom; where velocities are not rates, that is no kinetic
    energy of a body, whose momentum would turn with it.
    """
    joints = {n: robot.model.bodies[robot.model.mover(n)].joint for n in robot.joints}
    reasons = list(robot.mechanism.traits)
    reasons += [f"joint {n!r} rolls" for n, joint in joints.items() if not joint.holonomic]
    reasons += [
        f"joint {n!r} of type {joint.kind!r} has armature"
        for n, joint in joints.items()
        if not joint.additive and any(joint.armature)
    ]
    if reasons:
        problem = (
            f"integrator {name!r} is for trees with a Hamiltonian, which robot {robot.name!r} has "
            f"not: {reasons[0]}"
        )
        raise ModelError("E-MOTION-049", problem, "take 'rk4' or 'dopri5'", part="simulate")
