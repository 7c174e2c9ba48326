"""Graphs of joint torques and energies along a motion, up to the current time."""

from typing import Any, NamedTuple

import numpy as np

from chasles.errors import said, shown
from chasles.model.description import freedom_names
from chasles.robot import Robot

POINTS = 400
"""Number of samples per graph."""

MOST_CURVES = 8
"""Maximum number of torque curves; those with the largest torques are shown."""

COLORS = ("#3b6fb5", "#e08a2e", "#4d9a57", "#b5557f", "#7a63b8", "#8c6d46", "#2f9aa0", "#c44e4e")


class Curve(NamedTuple):
    """Label and values (n,) of one curve."""

    label: str
    values: np.ndarray


class Dynamics(NamedTuple):
    """Torques and energies along a motion. `t` (n,) contains the times in s."""

    t: np.ndarray
    torques: list[Curve]
    energies: list[Curve]


def dynamics(robot: Robot, t: np.ndarray, q: np.ndarray) -> Dynamics:
    """Compute torques and energies along a motion from configurations q (n, nq) at times t (n,).

    The times must be evenly spaced. Velocities and accelerations are computed by central
    differences, and by one-sided differences at the ends.
    """
    step = float(t[1] - t[0])
    between = robot.difference(q[:-1], q[1:]) / step
    qd = 0.5 * (between[[0, *range(len(between))]] + between[[*range(len(between)), -1]])
    qdd = np.gradient(qd, step, axis=0)
    tau = np.asarray(robot.inverse_dynamics(q, qd, qdd))
    names = [name for joint in robot.joints for name in _names(robot, joint)]
    largest = np.argsort(-np.max(np.abs(tau), axis=0), kind="stable")[:MOST_CURVES]
    torques = [Curve(shown(names[k]), tau[:, k]) for k in sorted(largest)]
    kinetic = np.asarray(robot.kinetic_energy(q, qd))
    potential = np.asarray(robot.potential_energy(q))
    total = Curve("total", kinetic + potential)
    return Dynamics(t, torques, [Curve("kinetic", kinetic), Curve("potential", potential), total])


def _names(robot: Robot, joint: str) -> tuple[str, ...]:
    body = robot.model.bodies[robot.model.mover(joint)]
    return tuple(freedom_names(joint, body.joint.nv))


class Graphs:
    """Section of the viewer's control panel with graphs of torques and energies.

    The curves are computed when they are first shown.
    """

    def __init__(self, server: Any, robot: Robot, motion: Any, first: float, last: float) -> None:
        self._server, self._robot, self._motion = server, robot, motion
        self._span, self._plots = (first, last), list[tuple[Any, np.ndarray, list[Curve]]]()
        self.box = server.gui.add_checkbox("Torques and energy", initial_value=False)
        self.note = server.gui.add_text("Graphs", "", disabled=True, visible=False)
        self.folder = server.gui.add_folder("Graphs", visible=False)
        self.box.on_update(lambda _: self.show(self.box.value))
        self.clock = first

    def show(self, wanted: bool) -> None:
        """Show or hide the graphs."""
        if wanted and not self._plots:
            try:
                self._plots = self._made()
            except (ValueError, TypeError) as error:
                self.note.value, self.note.visible = said(error), True
        self.folder.visible = wanted and bool(self._plots)
        self.draw(self.clock)

    def _made(self) -> list[tuple[Any, np.ndarray, list[Curve]]]:
        from viser import uplot

        t = np.linspace(*self._span, POINTS)
        q = np.stack([self._motion.at(self._robot, float(each)) for each in t])
        found = dynamics(self._robot, t, q)
        plots = []
        with self.folder:
            for title, curves in (
                ("Joint torques, N m (forces, N)", found.torques),
                ("Energy, J", found.energies),
            ):
                series = [uplot.Series(label="t, s")] + [
                    uplot.Series(label=curve.label, stroke=COLORS[k], width=2)
                    for k, curve in enumerate(curves)
                ]
                limits = {"x": uplot.Scale(time=False, auto=False, range=self._span)}
                drawn = (t, *(curve.values for curve in curves))
                plot = self._server.gui.add_uplot(
                    drawn, tuple(series), title=title, scales=limits, aspect=1.6
                )
                plots.append((plot, t, curves))
        return plots

    def draw(self, clock: float) -> None:
        """Draw the curves up to the time `clock` (s)."""
        self.clock = clock
        if self.folder.visible:
            for plot, t, curves in self._plots:
                past = t <= clock
                plot.data = (t, *(np.where(past, curve.values, np.nan) for curve in curves))
