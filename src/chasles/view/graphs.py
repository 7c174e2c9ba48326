"""Graphs of joint torques and energies along a motion, up to the current time."""

from typing import Any, NamedTuple

import numpy as np

from chasles.errors import said, shown
from chasles.functions.doors import Wrench
from chasles.model.description import freedom_names
from chasles.motion.contact.points import contact_wrenches
from chasles.motion.drivers.compiled import DONE
from chasles.motion.records import Trajectory
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


class Efforts(NamedTuple):
    """Joint torques or forces `tau` (n, nv) in N m or N at times `t` (n,) in s."""

    t: np.ndarray
    tau: np.ndarray


class Dynamics(NamedTuple):
    """Torques and energies along a motion. `t` (n,) contains the times in s."""

    t: np.ndarray
    torques: list[Curve]
    energies: list[Curve]


def simulated(run: Trajectory, robot: Robot) -> Efforts | None:
    """Return the joint torques of a simulation, or None if its contact forces are not known.

    The torques result from inverse dynamics with the contact forces. They include the torques of
    dry friction, damping and joint limits. Torques are NaN next to events, at which the velocities
    may change.
    """
    last = np.diff(run.t, append=np.inf) > 0.0
    t, q, qd = run.t[last], run.q[last], run.qd[last]
    steps = 0 if run.end is None else int(run.end.memory.get(DONE, 0))
    skipped = run.iterations is not None and run.touching is not None and steps >= len(t)
    if len(t) < 2 or skipped:  # the forces of skipped steps of "time-stepping" are not known
        return None
    if run.iterations is None:
        qdd, pressed = np.gradient(qd, t, axis=0), slice(None)
    else:  # a force of "time-stepping" is the mean over the step that ends at its state
        qdd, pressed = np.diff(qd, axis=0) / np.diff(t)[:, None], slice(1, None)
        q, qd = q[:-1], qd[:-1]
    wrenches: dict[str, Wrench] = {}
    if run.touching is not None:
        forces, stepped = run.touching.forces[last][pressed], run.iterations is not None
        found = contact_wrenches(robot.model, run.contacts, q, forces, stepped=stepped)
        if found is None:
            return None
        wrenches = {frame: Wrench(value, at="world") for frame, value in found.items()}
    tau = np.array(robot.inverse_dynamics(q, qd, qdd, f_ext=wrenches))
    for event in run.events:
        k = int(np.searchsorted(t, event.t))
        tau[max(k - 1, 0) : k + 1] = np.nan
    return Efforts(t[: len(tau)], tau)


def dynamics(
    robot: Robot, t: np.ndarray, q: np.ndarray, efforts: Efforts | None = None
) -> Dynamics:
    """Compute torques and energies along a motion from configurations q (n, nq) at times t (n,).

    The times must be evenly spaced. Velocities and accelerations are computed by central
    differences, and by one-sided differences at the ends. If `efforts` is None, the torques are
    those of inverse dynamics without contact forces. The wrench on a floating base is then omitted,
    because contact forces would provide it.
    """
    step = float(t[1] - t[0])
    between = robot.difference(q[:-1], q[1:]) / step
    qd = 0.5 * (between[[0, *range(len(between))]] + between[[*range(len(between)), -1]])
    rows = [(joint, name) for joint in robot.joints for name in _names(robot, joint)]
    if efforts is None:
        tau = np.asarray(robot.inverse_dynamics(q, qd, np.gradient(qd, step, axis=0)))
        moved = [not robot.joint(joint).traits.floating for joint, _ in rows]
    else:
        tau = np.array([np.interp(t, efforts.t, each) for each in efforts.tau.T]).T
        moved = [True] * len(rows)
    sizes = np.max(np.abs(np.nan_to_num(tau)), axis=0)
    largest = [k for k in np.argsort(-sizes, kind="stable") if moved[k]][:MOST_CURVES]
    torques = [Curve(shown(rows[k][1]), tau[:, k]) for k in sorted(largest)]
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
        self._span, self.plots = (first, last), list[tuple[Any, np.ndarray, list[Curve]]]()
        self.box = server.gui.add_checkbox("Torques and energy", initial_value=False)
        self.note = server.gui.add_text("Graphs", "", disabled=True, visible=False)
        self.folder = server.gui.add_folder("Graphs", visible=False)
        self.box.on_update(lambda _: self.show(self.box.value))
        self.clock = first

    def show(self, wanted: bool) -> None:
        """Show or hide the graphs."""
        if wanted and not self.plots:
            try:
                self.plots = self._made()
            except (ValueError, TypeError) as error:
                self.note.value, self.note.visible = said(error), True
        self.folder.visible = wanted and bool(self.plots)
        self.draw(self.clock)

    def _made(self) -> list[tuple[Any, np.ndarray, list[Curve]]]:
        from viser import uplot

        t = np.linspace(*self._span, POINTS)
        q = np.stack([self._motion.at(self._robot, float(each)) for each in t])
        efforts = self._motion.efforts()
        found = dynamics(self._robot, t, q, efforts)
        kind = "Joint torques" if efforts else "Joint torques without contact forces"
        plots = []
        with self.folder:
            for title, curves in (
                (f"{kind}, N\N{NO-BREAK SPACE}m (forces, N)", found.torques),
                ("Energy, J", found.energies),
            ):
                if not curves:  # a floating body without joints
                    continue
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
            for plot, t, curves in self.plots:
                past = t <= clock
                plot.data = (t, *(np.where(past, curve.values, np.nan) for curve in curves))
