"""Find the tool frame of a robot, which is the default frame of functions and commands."""

import re
from collections import Counter
from collections.abc import Sequence

from chasles.model.model import WORLD, Model

TOOLS = ("tool", "tool0", "tcp", "tool_link", "end_effector", "ee_link", "grasp_target")
"""Common names of tool frames in robot files, with or without a prefix such as `panda_`."""


SENSORS = {"imu", "ft", "sensor", "camera", "optical", "lidar", "accelerometer", "gyro"}
"""Words in the names of sensor frames, which are not tools."""

FINGER = re.compile("finger|thumb|jaw", re.IGNORECASE)
"""Words in the names of links and joints of a gripper or hand, beyond its palm."""

GRIPPER = re.compile("^(?!.*(roll|pitch|yaw)).*gripper", re.IGNORECASE)
"""Names of joints that open a gripper, but not of joints that turn it."""


def tool(model: Model) -> str:
    """Return the name of the tool frame.

    Frames with a common tool name (`TOOLS`) are preferred. The next choice is the platform of a
    parallel robot, to which at least three loop joints are attached. Otherwise, the tool is the
    last frame at the end of the longest chain, excluding the fingers of a gripper. Among several
    longest chains, the first is chosen. Frames of sensors are not tools if there is another frame.
    """
    frames = [name for name in model.frames if not _is_sensor(name)]
    named = [name for word in TOOLS for name in frames if _is_named(name, word)]
    if named:
        return named[0]
    depth: dict[int, int] = {WORLD: 0}
    for i, body in enumerate(model.bodies):
        depth[i] = depth[body.parent] + 1
    closed = Counter(end.body for loop in model.loops for end in (loop.predecessor, loop.successor))
    platform = max(range(len(model.bodies)), key=lambda i: closed[i], default=WORLD)
    end = platform if closed[platform] >= 3 else max(depth, key=lambda i: depth[i])
    end = _palm(model, end)
    here = [name for name, frame in model.frames.items() if frame.body == end]
    return _last(model, here, frames) if here else [*model.frames][-1]


def _last(model: Model, here: Sequence[str], frames: Sequence[str]) -> str:
    """Return the last frame of a body that is in `frames`; `here` are the frames of the body.

    If the body carries a gripper with fixed fingers, return the frame that carries all fingers.
    """
    fingers = [name for name in here if FINGER.search(name)]
    fingers = [] if here[0] in fingers else fingers
    above = {x.child: x.parent for x in model.source.joints if x.child in here[1:]}
    shared = set(here) if fingers else set()
    for name in fingers:
        chain = [name]
        while (parent := above.get(chain[-1])) is not None:
            chain.append(parent)
        shared &= {*chain[1:]}
    wanted = [name for name in here if name in frames]
    return ([name for name in here if name in shared] or wanted or [*here])[-1]


def _palm(model: Model, end: int) -> int:
    """Return the body that carries the fingers at the end of a chain, or the end itself.

    Fingers are recognized by their names (`FINGER`, `GRIPPER`), or as the only bodies on the palm.
    The tool of a hand without an arm is a finger.
    """
    palm = end
    while palm != WORLD and (_is_finger(model, palm) or _is_named_finger(model, palm)):
        palm = model.bodies[palm].parent
    if palm != WORLD:
        return palm
    while end != WORLD and _is_finger(model, end):
        end = model.bodies[end].parent
    return end


def _is_finger(model: Model, i: int) -> bool:
    """Return True if a body looks like the finger of a gripper.

    A body is assumed to be a finger if it has siblings, the body and all siblings are leaf bodies,
    and their parent is not a root body.
    """
    parent = model.bodies[i].parent
    around = model.children[parent]
    ends = not any(model.children[other] for other in around)
    return parent != WORLD and model.bodies[parent].parent != WORLD and len(around) > 1 and ends


def _is_named_finger(model: Model, i: int) -> bool:
    joint = model.bodies[i].data.name
    link = next((name for name, frame in model.frames.items() if frame.body == i), "")
    return bool(GRIPPER.search(joint) or FINGER.search(joint) or FINGER.search(link))


def _is_sensor(name: str) -> bool:
    return not SENSORS.isdisjoint(re.split(r"[\W_]+", name.lower()))


def _is_named(name: str, word: str) -> bool:
    return name.lower() == word or name.lower().endswith(f"_{word}")
