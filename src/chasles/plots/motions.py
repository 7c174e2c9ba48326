"""Forces and energies along a motion."""

from typing import Any

import numpy as np

from chasles.errors import InputError
from chasles.plots.paper import Axes, curves, finish, new
from chasles.plots.subject import Subject, efforts, path, times


def torque(robot: Subject, q: Any, qd: Any, qdd: Any, t: Any, axes: Axes | None) -> Axes:
    """The joint forces of inverse dynamics at each instant."""
    motion = path("q", q, robot.nq), path("qd", qd, robot.nv), path("qdd", qdd, robot.nv)
    if len({len(part) for part in motion}) > 1:
        problem = f"q, qd and qdd have {', '.join(str(len(p)) for p in motion)} instants"
        raise InputError("E-PLOT-002", problem)
    return forces(robot, robot.inverse_dynamics(*motion), t, axes)


def forces(robot: Subject, tau: np.ndarray, t: Any, axes: Axes | None) -> Axes:
    """Joint forces tau (n, nv) that are known already."""
    known = list(efforts(robot))
    instants, across = times(t, len(tau))
    units = ", ".join(sorted({unit for _, unit in known}, key=["N m", "N"].index))
    names = [name for name, _ in known]
    drawn = new(axes)
    curves(drawn, instants, dict(zip(names, tau.T, strict=True)))
    return finish(drawn, f"joint forces ({units})", across)


def energy(robot: Subject, q: Any, qd: Any, t: Any, axes: Axes | None) -> Axes:
    """Kinetic and potential energy and their sum at each instant."""
    positions, rates = path("q", q, robot.nq), path("qd", qd, robot.nv)
    if len(positions) != len(rates):
        raise InputError("E-PLOT-003", f"q has {len(positions)} instants and qd {len(rates)}")
    kinetic = robot.kinetic_energy(positions, rates)
    return energies(kinetic, robot.potential_energy(positions), t, axes)


def energies(kinetic: np.ndarray, potential: np.ndarray, t: Any, axes: Axes | None) -> Axes:
    """Energies (n,) that are known already; the potential one from where it begins."""
    instants, across = times(t, len(kinetic))
    gained = potential - potential[0]
    drawn = new(axes)
    curves(drawn, instants, {"kinetic": kinetic, "potential, gained": gained})
    curves(drawn, instants, {"sum": kinetic + gained}, color="k")
    return finish(drawn, "energy (J)", across)
