"""What robot files other than our own cannot say, in one form of words."""

from chasles.errors import ModelError
from chasles.model import Description, JointData


def refusal(code: str, part: str, problem: str, format: str, remedy: str) -> ModelError:
    """The error of a part that a format cannot hold."""
    return ModelError(code, f"it {problem}, which {format} cannot say", remedy, part=part)


def check_writable(description: Description, format: str) -> tuple[str, ...]:
    """Refuse what no format but our own holds; notes on what is left out without harm."""
    if description.massless:
        problem = "has no masses at all"
        remedy = "save it as .toml"
        raise refusal("E-FILE-031", f"robot {description.name!r}", problem, format, remedy)
    for joint in description.joints:
        check_joint(joint, format)
    notes = []
    if description.independent:
        names = ", ".join(map(repr, description.independent))
        notes.append(
            f"the choice of {names} as independent has no place in {format}; .toml has one"
        )
    if any(shape.color and shape.role == "collision" for shape in description.shapes):
        notes.append(f"colours of shapes for collision have no place in {format}; .toml has one")
    return tuple(notes)


def check_joint(joint: JointData, format: str = "a file") -> None:
    """Refuse what is a function in Python: a type of one's own, a motion in time."""
    if joint.custom is not None:
        problem = "is of a type of your own"
        raise refusal("E-FILE-032", f"joint {joint.name!r}", problem, format, "keep it in Python")
    if joint.motion is not None:
        remedy = "save the robot before it is, and keep the motion in Python, with robot.drive"
        raise refusal("E-FILE-033", f"joint {joint.name!r}", "is driven in time", format, remedy)
