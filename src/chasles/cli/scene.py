"""Scenes: robots with the initial states, controllers and contacts of their scenarios."""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import FunctionType
from typing import Any, Literal

import numpy as np

from chasles.cli.options import Loading, find
from chasles.cli.scenario import Scenario, pair
from chasles.cli.scenario_fields import ACTUATED, ACTUATORS, CONTROLS, OLD_GAINS
from chasles.contact import Pair, Plane, file_pairs
from chasles.errors import InputError
from chasles.functions.doors import from_names
from chasles.motion.contact.points import contact_points, depths, fixed_planes, lifted, slot_names
from chasles.motion.controllers import controlled
from chasles.motion.drivers.stepping import TIME_STEPPING
from chasles.motion.options import MOST_STEPS
from chasles.names import suggest
from chasles.robot import Robot
from chasles.rollouts import End, Trajectory
from chasles.trajectory import load

SETTINGS = ("duration", "dt", "integrator", "rtol", "atol", "every", "dissipation", "limits")
"""Top-level scenario keys that are passed to `simulate`."""

LOADING = tuple(field.name for field in fields(Loading) if field.name != "trust")
"""Top-level scenario keys that determine how the robot is loaded."""

ROUNDING = 1e-6
"""Rounding tolerance for the times at which the disturbance changes, as a fraction of `hold`."""

DEEP = 1e-3
"""Minimum initial ground penetration (m) at which the base is raised or a note is printed."""

Force = Callable[[float, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Scene:
    """A robot with the initial state, controller and contacts of its scenario.

    `driven` contains the actuator controls and activations, or {} if the control law does not use
    actuators. `digest` is the SHA-256 digest of the robot description. `raised` contains, by joint
    name, the distance (m) by which each floating base was raised out of the ground.
    """

    scenario: Scenario
    robot: Robot
    q: np.ndarray
    qd: np.ndarray
    control: Any
    driven: Mapping[str, np.ndarray]
    contacts: tuple[Pair, ...] | Literal["file"]
    digest: str
    raised: Mapping[str, float]

    def simulate(
        self, steps: int | None = None, resume: End | None = None, **more: Any
    ) -> Trajectory:
        """Simulate from the initial state, or from `resume`, the end state of earlier steps.

        `steps` is the number of steps (default: all). `more` contains other options of
        `Robot.simulate`.
        """
        top = self.scenario.top
        options = {key: top[key] for key in SETTINGS if key in top}
        options |= {
            "control": self.control,
            "steps": steps,
            "resume": resume,
            **self.driven,
            **more,
        }
        return self.robot.simulate(self.q, self.qd, contacts=self.contacts, **options)

    @property
    def stepped(self) -> bool:
        """Return True if the time-stepping integrator is used."""
        top = self.scenario.top
        usual = TIME_STEPPING if "ground" in top or self.contacts == "file" else ""
        return bool(top.get("integrator", usual) == TIME_STEPPING)

    def points(self, q: np.ndarray, count: int) -> np.ndarray | None:
        """Return contact points (n, count, 3) in the world frame for configurations q (n, nq)."""
        pairs, stepped = self._pairs, self.stepped
        return contact_points(self.robot.model, pairs, q, count=count, stepped=stepped)

    @property
    def planes(self) -> np.ndarray:
        """Point and unit normal of each contact plane of the world, (n, 2, 3)."""
        return fixed_planes(self._pairs)

    @property
    def pairs(self) -> int:
        """Number of contact pairs."""
        return len(self._pairs)

    def slot_names(self, count: int) -> list[str]:
        """Return the name of the pair of shapes at each of `count` contact points."""
        return slot_names(self.robot.model, self._pairs, count, stepped=self.stepped)

    def sunken(self) -> dict[str, float]:
        """Return the initial penetration depths (m) of parts of the robot that are in the ground.

        The key of each part is the joint that attaches the part to the world.
        """
        return _sunken(self.robot, self._pairs, self.q)

    @property
    def _pairs(self) -> Sequence[Pair]:
        return file_pairs(self.robot) if self.contacts == "file" else self.contacts

    def torques(self, motion: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the joint torques (n, nv) from the controller, actuators and disturbance.

        `motion` contains the arrays t, q, qd and, for actuators with activations, act.
        """
        robot, states = self.robot, (motion["q"], motion["qd"])
        if self.driven:
            return np.array(robot.actuate(*states, self.driven["ctrl"], motion.get("act")))
        if self.control is None:
            return np.zeros_like(motion["qd"])
        law = self.control
        if not isinstance(law, FunctionType):
            law = controlled(robot.mechanism, law)
        return np.array(
            [law(float(t), *state) for t, *state in zip(motion["t"], *states, strict=True)]
        )


def loaded(scenario: Scenario, *, trust: bool = False) -> Robot:
    """Load a scenario's robot.

    `trust` allows a .xacro file to run Python; a scenario cannot grant this permission.
    """
    top = scenario.top
    how = Loading(**{key: top[key] for key in LOADING if key in top}, trust=trust)
    with scenario.blamed("robot"):
        return find(top["robot"], how)


def made(scenario: Scenario, *, trust: bool = False, robot: Robot | None = None) -> Scene:
    """Build the scene for a scenario. Errors name the location of the invalid value.

    `trust` has the same meaning as in `loaded`. `robot` is the robot to use instead of the
    scenario's robot.
    """
    robot = robot or loaded(scenario, trust=trust)
    q, qd = _start(scenario, robot)
    contacts = _contacts(scenario, robot)
    q, raised = _standing(scenario, robot, contacts, q)
    forces, driven = _forces(scenario, robot, q), _actuators(scenario, robot)
    return Scene(scenario, robot, q, qd, forces, driven, contacts, digest(robot), raised)


def digest(robot: Robot) -> str:
    """Return a digest of the robot properties that affect its motion."""
    source = robot.model.source
    parts: dict[str, Any] = {
        name: tuple(replace(part, where="") for part in getattr(source, name))
        for name in ("links", "joints", "loops", "couplings")
    }
    said = replace(source, notes=(), where="", **parts)
    return hashlib.sha256(repr((said, robot.mimic)).encode()).hexdigest()


# State -----------------------------------------------------------------------------------------


def _start(scenario: Scenario, robot: Robot) -> tuple[np.ndarray, np.ndarray]:
    """Return the initial q and qd, with dependent coordinates adjusted to close the loops.

    By default, a robot that follows a motion starts with the initial position and velocity of the
    motion.
    """
    given = scenario.tables["start"]
    q = robot.random(seed=given["random"]) if "random" in given else robot.neutral()
    still = np.zeros(robot.nv)
    followed = scenario.tables["control"].get("follow")
    if key := _keyframe(scenario, robot):
        q, still = key.q, key.qd
    elif followed is not None and "random" not in given:
        move = load(followed, robot)
        q, still = move(move.breaks[0], 1)
    q = _coordinates(scenario, robot.position_slice, q, "start", "q")
    qd = _coordinates(scenario, robot.velocity_slice, still, "start", "qd")
    anywhere = "random" not in given and isinstance(given.get("q", {}), Mapping)
    with scenario.blamed("start", "q"):
        return robot.mechanism.closed(q, qd, anywhere=anywhere)


def _standing(
    scenario: Scenario, robot: Robot, contacts: Sequence[Pair] | Literal["file"], q: np.ndarray
) -> tuple[np.ndarray, dict[str, float]]:
    """Raise floating bases out of the scenario's ground.

    Return q, and the distances (m) by joint name. Base positions from the scenario, a keyframe or a
    reference motion are kept. No position is changed if the contacts in the robot's file are used,
    or if a loop attaches the robot to the world.
    """
    start, held = scenario.tables["start"], any(x.parent is None for x in robot.model.source.loops)
    given = start.get("q", {})
    placed = "keyframe" in start or "follow" in scenario.tables["control"]
    if contacts == "file" or held or placed or not isinstance(given, Mapping):
        return q, {}
    raised = {
        name: depth
        for name, depth in _sunken(robot, contacts, q).items()
        if name not in given and robot.joint(name).traits.floating
    }
    for name, depth in raised.items():
        q = lifted(robot.model, q, name, depth)
    return q, raised


def _sunken(robot: Robot, pairs: Sequence[Pair], q: np.ndarray) -> dict[str, float]:
    """Return the penetration depths (m) of parts of the robot that are in the ground.

    The key of each part is the joint that attaches the part to the world. Depths below `DEEP` are
    omitted.
    """
    found = depths(robot.model, pairs, q).items()
    return {robot.model.bodies[i].data.name: depth for i, depth in found if depth >= DEEP}


def _coordinates(
    scenario: Scenario, where: Callable[[str], slice], default: np.ndarray, table: str, key: str
) -> np.ndarray:
    """Return the array for a scenario value: a list of all values, or values by name.

    Values that are not given by name are taken from `default`.
    """
    given = scenario.tables[table].get(key, {})
    if isinstance(given, Mapping):
        with scenario.blamed(table, key):
            for joint, values in given.items():
                count = where(joint).stop - where(joint).start
                if np.size(values) != count:
                    problem = (
                        f"the number of values for {joint!r} must be {count}, not {np.size(values)}"
                    )
                    raise InputError("E-SCENARIO-009", problem)
            return from_names(given, where, default)
    if len(given) != len(default):
        problem = f"{key} must have {len(default)} entries, not {len(given)}"
        remedy = "give one value per coordinate or actuator, or give values by name"
        raise scenario.error("E-SCENARIO-010", problem, remedy, table, key)
    return np.array(given)


def _keyframe(scenario: Scenario, robot: Robot) -> Any:
    """Return the initial keyframe of a scenario, or None."""
    name = scenario.tables["start"].get("keyframe")
    if name is None:
        return None
    if name not in robot.keyframes:
        problem = f"unknown keyframe {name!r}"
        remedy = suggest(name, dict.fromkeys(robot.keyframes))
        raise scenario.error("E-SCENARIO-035", problem, remedy, "start", "keyframe")
    return robot.keyframes[name]


def _actuators(scenario: Scenario, robot: Robot) -> dict[str, np.ndarray]:
    """Return the initial actuator controls and activations, or {} if another control law is used.

    Values that the scenario omits come from the keyframe if there is one, and are otherwise zero.
    """
    if scenario.tables["control"].get("law") != ACTUATORS:
        return {}
    if not robot.actuators:
        problem = f"robot {robot.name!r} has no actuators"
        raise scenario.error("E-SCENARIO-036", problem, "use another law", "control", "law")
    key = _keyframe(scenario, robot)
    found = {}
    for what, names in zip(ACTUATED, (robot.actuators, robot.actuators.active), strict=True):
        place = {name: slice(k, k + 1) for k, name in enumerate(names)}
        default = np.zeros(len(names)) if key is None else getattr(key, what)

        def where(name: str, known: dict[str, slice] = place) -> slice:
            if name not in known:
                problem = f"unknown actuator {name!r}"
                raise InputError("E-SCENARIO-037", problem, suggest(name, known))
            return known[name]

        found[what] = _coordinates(scenario, where, default, "control", what)
    return found if len(robot.actuators.active) else {"ctrl": found["ctrl"]}


# Forces ----------------------------------------------------------------------------------------


def _forces(scenario: Scenario, robot: Robot, start: np.ndarray) -> Any:
    """Return the controller or the disturbance; if both are given, a function that adds them."""
    control, disturbance = _control(scenario, robot, start), _disturbance(scenario, robot)
    if disturbance is None or control is None:
        return disturbance or control
    law = controlled(robot.mechanism, control)
    return lambda t, q, qd: law(t, q, qd) + disturbance(t, q, qd)


def _control(scenario: Scenario, robot: Robot, start: np.ndarray) -> Any:
    """Build and check the controller; its default target is the initial position."""
    given = scenario.tables["control"]
    law = given.get("law", "none")
    if law in ("none", ACTUATORS):
        return None
    gains = [key for key in given if key not in ("law", "target", "follow")]
    values: dict[str, Any] = {
        OLD_GAINS.get(key, key): _each(scenario, robot, "control", key)[()] for key in gains
    }
    if "follow" in given:
        values["target"] = load(given["follow"], robot)
    elif law != "gravity":
        where = robot.position_slice
        values["target"] = _coordinates(scenario, where, start, "control", "target")
    with scenario.blamed("control", "law"):
        control = CONTROLS[law](**values)
        # Trace the controller, so that unsuitable parameters raise an error here.
        controlled(robot.mechanism, control)
        return control


def _disturbance(scenario: Scenario, robot: Robot) -> Force | None:
    """Return a function that computes random joint torques, redrawn every `hold` seconds."""
    given = scenario.tables["disturbance"]
    if not given:
        return None
    if scenario.top["duration"] / given["hold"] > MOST_STEPS:
        duration = scenario.top["duration"]
        problem = f"hold = {given['hold']:g} s is too short for a duration of {duration:g} s"
        remedy = f"increase `hold`; at most {MOST_STEPS:,} intervals are supported"
        raise scenario.error("E-SCENARIO-030", problem, remedy, "disturbance", "hold")
    effort, last = _each(scenario, robot, "disturbance", "effort"), (-1, np.zeros(robot.nv))

    def force(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        nonlocal last
        interval = math.floor(t / given["hold"] + ROUNDING)
        if interval != last[0]:
            stream = np.random.Generator(np.random.Philox(key=[given["seed"], interval]))
            last = interval, effort * stream.standard_normal(robot.nv)
        return last[1]

    return force


def _each(scenario: Scenario, robot: Robot, table: str, key: str) -> np.ndarray:
    """Return a scenario value: a scalar, or one value per degree of freedom."""
    given = np.asarray(scenario.tables[table][key])
    if given.shape not in ((), (robot.nv,)):
        problem = f"{key} has {given.size} entries, not 1 or {robot.nv}"
        remedy = f"give one value, or one for each of the {robot.nv} degrees of freedom"
        raise scenario.error("E-SCENARIO-012", problem, remedy, table, key)
    return given


# Contacts --------------------------------------------------------------------------------------


def _contacts(scenario: Scenario, robot: Robot) -> tuple[Pair, ...] | Literal["file"]:
    """Return the contact pairs, or "file" if the contacts in the robot's file are used.

    Soft contacts cannot be combined with joint limits or rigid contacts.
    """
    if "ground" in scenario.top:
        return _on_the_ground(scenario, robot)
    if not scenario.contacts:
        return _of_the_file(scenario, robot)
    if scenario.top.get("contacts") == "file":
        problem = "contacts from the file cannot be combined with other contacts"
        remedy = 'remove contacts = "file" or all [[contact]] tables'
        raise scenario.error("E-SCENARIO-031", problem, remedy, "contacts")
    firm = [row["law"]["kind"] == "rigid" for row in scenario.contacts]
    if (scenario.top.get("limits") or any(firm)) and not all(firm):
        problem = "soft contact laws cannot be combined with joint limits or rigid contacts"
        remedy = "use kind 'rigid' for all contacts"
        raise scenario.error("E-SCENARIO-013", problem, remedy, "contact", firm.index(False), "law")
    for i, row in enumerate(scenario.contacts):
        for key in ("body", "surface"):
            with scenario.blamed("contact", i, key):
                if "frame" in row[key]:
                    robot.model.frame(row[key]["frame"])
    return tuple(map(pair, scenario.contacts))


def _on_the_ground(scenario: Scenario, robot: Robot) -> tuple[Pair, ...]:
    """Return contact pairs of collision shapes with each other and with the plane z = 0."""
    law, pairs = scenario.top["ground"], list[Pair]()
    if any(shape.collides for shape in robot.model.source.shapes):
        pairs = file_pairs(
            robot,
            ground=Plane(),
            friction=law.get("friction"),
            restitution=law.get("restitution", 0.0),
        )
    if not pairs:
        problem = f"robot {robot.name!r} has no collision shapes that could touch the ground"
        remedy = "name the contact frames with --foot FRAME:RADIUS"
        raise scenario.error("E-SCENARIO-040", problem, remedy, "ground")
    return tuple(pairs)


def _of_the_file(scenario: Scenario, robot: Robot) -> tuple[Pair, ...] | Literal["file"]:
    """Return "file" if the contacts in the robot's file are used, or else an empty tuple.

    By default, these contacts are used if the file has a ground plane but no loops or couplings,
    and the scenario does not set the integrator.
    """
    top, source = scenario.top, robot.model.source
    stands = source.planes and not (source.loops or source.couplings or "integrator" in top)
    return "file" if top.get("contacts", "file" if stands else "none") == "file" else ()
