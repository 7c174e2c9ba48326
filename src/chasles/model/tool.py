"""Find the tool frame of a robot, which is the default frame of functions and commands."""

from collections import Counter

from chasles.model.model import WORLD, Model

TOOLS = ("tool", "tool0", "tcp", "tool_link", "end_effector", "ee_link", "grasp_target")
"""Common names of tool frames in robot files, with or without a prefix such as `panda_`."""


def tool(model: Model) -> str:
    """Return the name of the tool frame.

    Frames with a common tool name (`TOOLS`) are preferred. The next choice is the platform of a
    parallel robot, to which at least three loop joints are attached. Otherwise, the tool is the
    last frame at the end of the longest chain, excluding the fingers of a gripper.
    """
    named = [name for word in TOOLS for name in model.frames if _is_named(name, word)]
    if named:
        return named[0]
    depth: dict[int, int] = {WORLD: 0}
    for i, body in enumerate(model.bodies):
        depth[i] = depth[body.parent] + 1
    closed = Counter(end.body for loop in model.loops for end in (loop.predecessor, loop.successor))
    platform = max(range(len(model.bodies)), key=lambda i: closed[i], default=WORLD)
    end = platform if closed[platform] >= 3 else max(depth, key=lambda i: depth[i])
    while end != WORLD and _is_finger(model, end):
        end = model.bodies[end].parent
    here = [name for name, frame in model.frames.items() if frame.body == end]
    return (here or list(model.frames))[-1]


def _is_finger(model: Model, i: int) -> bool:
    """Return True if a body looks like the finger of a gripper.

    A body is assumed to be a finger if it has siblings, the body and all siblings are leaf bodies,
    and their parent is not a root body.
    """
    parent = model.bodies[i].parent
    around = model.children[parent]
    ends = not any(model.children[other] for other in around)
    return parent != WORLD and model.bodies[parent].parent != WORLD and len(around) > 1 and ends


def _is_named(name: str, word: str) -> bool:
    return name.lower() == word or name.lower().endswith(f"_{word}")
