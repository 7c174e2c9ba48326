"""Command-line messages, which name options instead of Python arguments."""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from chasles.errors import ChaslesError
from chasles.plots.paper import efforts
from chasles.robot import Robot

MOST_NAMED = 3
"""Maximum number of joints named in a note."""

REMEDIES = {
    "E-CALL-067": "add mass to the link that the joint moves, or armature to the joint",
    "E-CALL-360": "give --pose X,Y,Z for a position only",
    "E-CONTACT-012": "give each contact the law 'rigid'",
    "E-LOOP-011": "start from another position",
    "E-LOOP-021": "give only independent joints, as JOINT=X",
    "E-LOOP-023": "give only independent joints, as JOINT=X",
    "E-LOOP-035": "omit --method",
    "E-MOTION-007": "give each contact a soft law, or use --integrator time-stepping",
    "E-MOTION-070": "give each contact the law 'rigid'",
    "E-MOTION-121": "increase --dt, or reduce --duration",
    "E-MOTION-122": "increase --dt",
    "E-MOTION-184": "give only independent joints, as JOINT=X",
    "E-MOTION-134": "use --ground for a floor at z = 0",
    "E-MOTION-203": "remove the sensors from the scenario",
    "E-MOTION-133": "give each contact the law 'rigid', or use another --integrator",
    "E-PATH-017": "use --kind spline with a table of postures",
    "E-PATH-037": "give --duration",
    "E-PATH-039": "use a robot without rolling joints",
    "E-XACRO-003": "if you trust the file, allow it to run Python with --trust",
    "E-VERIFY-001": "`chasles info` shows the mobility of the mechanism",
}
"""Command-line remedies by error code.

In the remedies of all other errors, only the argument names are replaced with options.
"""

_COLUMNS = re.compile(r"(columns|units)=\{([^}]*)\}")
_ENTRY = re.compile(r"'([^']*)': (?:'([^']*)'|\.\.\.)")
_CALL = re.compile(r"\b[\w.]+\((?:\w+, )*(\w+=[^(),]*)\)")
_ARGUMENT = re.compile(r"`(\w+)`|\b(\w+)=(?:'([^']*)'|\"([^\"]*)\"|(True|False)\b|([\w.]+)|(?!\w))")


def in_the_shell(error: ChaslesError, options: Iterable[str]) -> ChaslesError:
    """Return an error with a remedy that names command-line options, such as "--velocity"."""
    remedy = REMEDIES.get(error.code) or renamed(error.remedy, options)
    return error if remedy == error.remedy else error.at(remedy=remedy)


def renamed(text: str, options: Iterable[str]) -> str:
    """Replace the names of Python arguments in a message with the matching options."""
    known = {name.lstrip("-").replace("-", "_"): name for name in options}

    def pairs(found: re.Match[str]) -> str:
        flag = known.get(found[1].removesuffix("s"))
        entries = [(key, value or "NAME") for key, value in _ENTRY.findall(found[2])]
        if flag is None or not entries:
            return found[0]
        return " ".join(f"{flag} {key}={value}" for key, value in entries)

    def argument(found: re.Match[str]) -> str:
        name, value = found[1] or found[2], found[3] or found[4] or found[6] or ""
        if found[5] == "False" and f"no_{name}" in known:
            return known[f"no_{name}"]
        if found[5] == "True" and f"no_{name}" in known:
            return f"no {known[f'no_{name}']}"
        return f"{known[name]} {value}".rstrip() if name in known else found[0]

    def call(found: re.Match[str]) -> str:  # replace a Python call with an option
        option = _ARGUMENT.sub(argument, found[1])
        return found[0] if option == found[1] else option

    return _ARGUMENT.sub(argument, _CALL.sub(call, _COLUMNS.sub(pairs, text)))


@contextmanager
def warnings_as_notes(write: Callable[[str], None], options: Iterable[str]) -> Iterator[None]:
    """Print each distinct warning once, as a one-line note."""
    told: set[str] = set()

    def show(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
        text = renamed(str(message), options)
        if text not in told:
            told.add(text)
            write(f"note: {text}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def outside_limits(robot: Robot, q: np.ndarray, what: str) -> str:
    """Return a note about joints outside their limits or beyond two turns, or "".

    `q` is one configuration (nq,), or several (n, nq). The note gives each joint's worst value.
    """
    found, turned = [], False
    for joint in robot.joints:
        place, (lower, upper) = robot.position_slice(joint), _range(robot, joint)
        if place.stop - place.start != 1:
            continue
        values = np.atleast_2d(q)[:, place.start]
        x = values[np.argmax(np.maximum(values - upper, lower - values))]
        if not lower <= x <= upper:
            found.append(f"{joint!r} ({x + 0.0:.4g}, limits {lower:.4g} to {upper:.4g})")
            turned |= bool(abs(x) > 2.0 * np.pi) and _turns(robot, joint)
    if not found:
        return ""
    asked = "; angles are in rad, not in degrees" if turned else ""
    return f"{what} is outside the limits of {_some(found)}{asked}"


def beyond_limits(robot: Robot, quantity: str, peaks: np.ndarray, what: str) -> str:
    """Return a note about joints whose peak "velocity" or "effort" exceeds its limit, or "".

    `peaks` are the largest absolute values (nv,). Values up to 0.1 % above a limit are accepted,
    because a time-optimal motion reaches its limits.
    """
    limits = getattr(robot.limits, quantity)
    found = [
        f"{name!r} ({peak:.4g}, limit {limit:.4g})"
        for (name, _), peak, limit in zip(efforts(robot), peaks, limits, strict=True)
        if peak > 1.001 * limit
    ]
    return f"{what} exceeds the {quantity} limits of {_some(found)}" if found else ""


def is_lossy(robot: Robot) -> bool:
    """Return True if a joint of the robot has damping or friction."""
    joints = map(robot.joint, robot.joints)
    return any(joint.damping or joint.friction for joint in joints)


def _some(found: list[str]) -> str:
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return f"{', '.join(found[:MOST_NAMED])}{more}"


def _range(robot: Robot, joint: str) -> tuple[float, float]:
    """Return the joint limits, or two turns in each direction where an angle has no limit."""
    limits = robot.joint(joint).limits
    far = 4.0 * np.pi if _turns(robot, joint) else np.inf
    lower = -far if np.isinf(limits.lower) else limits.lower
    return lower, far if np.isinf(limits.upper) else limits.upper


def _turns(robot: Robot, joint: str) -> bool:
    return robot.joint(joint).traits.hinge


def options_of(parameters: Iterable[Any]) -> tuple[str, ...]:
    """Return the long option names of a command."""
    return tuple(name for p in parameters for name in p.opts if name.startswith("--"))
