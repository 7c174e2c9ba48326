"""Suggestions for misspelled names and for names used by other libraries."""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from types import FunctionType, ModuleType
from typing import Any

from chasles.errors import ArgumentError, ChaslesError

FOREIGN = {
    "aba": "forward_dynamics",
    "articulated_body_algorithm": "forward_dynamics",
    "nle": "bias_forces",
    "nonlinear_effects": "bias_forces",
    "crba": "mass_matrix",
    "composite_rigid_body": "mass_matrix",
    "inertia_matrix": "mass_matrix",
    "joint_space_inertia": "mass_matrix",
    "inertia": "mass_matrix",
    "minverse": "mass_matrix_inverse",
    "rnea": "inverse_dynamics",
    "id": "inverse_dynamics",
    "fd": "forward_dynamics",
    "fk": "forward_kinematics",
    "fkine": "forward_kinematics",
    "forward_kinematic": "forward_kinematics",
    "frame_placement": "forward_kinematics",
    "ik": "inverse_kinematics",
    "ikine": "inverse_kinematics",
    "inverse_kinematic": "inverse_kinematics",
    "jacob0": "jacobian",
    "jacobe": "jacobian",
    "jacobian_body": "jacobian",
    "jacobian_world": "jacobian",
    "body_jacobian": "jacobian",
    "space_jacobian": "jacobian",
    "frame_jacobian": "jacobian",
    "jacobian_dot": "jacobian_rate",
    "coriolis": "coriolis_matrix",
    "gravload": "gravity_forces",
    "gravity_torques": "gravity_forces",
    "gravity_vector": "gravity_forces",
    "generalized_gravity": "gravity_forces",
    "com": "center_of_mass",
    "ccrba": "centroidal_momentum_matrix",
    "energy": "kinetic_energy",
    "joint_torque_regressor": "regressor",
    "neutral_configuration": "neutral",
    "random_configuration": "random",
    "q0": "neutral",
    "n": "nv",
    "num_positions": "nq",
    "num_velocities": "nv",
    "dof": "nv",
    "ndof": "nv",
    "njoints": "nv",
    "links": "bodies",
    "joint_names": "joints",
    "link_names": "bodies",
    "body_names": "bodies",
    "frame_names": "frames",
    "joint_limits": "limits",
    "qlim": "limits",
    "q_lower": "limits.lower",
    "q_upper": "limits.upper",
    "lower": "limits.lower",
    "upper": "limits.upper",
    "lower_limits": "limits.lower",
    "upper_limits": "limits.upper",
    "lowerpositionlimit": "limits.lower",
    "upperpositionlimit": "limits.upper",
    "velocity_limits": "limits.velocity",
    "velocitylimit": "limits.velocity",
    "effort_limits": "limits.effort",
    "effortlimit": "limits.effort",
    "end_effector": "tool",
    "visualize": "show",
    "view": "show",
    "display": "show",
    "render": "show",
    "animate": "show",
    "step": "simulate",
    "forward": "simulate",
    "home": "neutral",
    "num_joints": "nv",
    "torque": "inverse_dynamics",
    "torques": "inverse_dynamics",
    "twist": "frame_velocity",
}
"""Lower-case function and attribute names in Pinocchio, Drake, MuJoCo and the Robotics Toolbox, and
the corresponding names in chasles."""


FUNCTIONS = (
    *("calibrate", "compare", "compile", "condition", "cost", "excite", "export", "identify"),
    *("maximal_dynamics", "online_estimator", "save", "to_dh"),
)
"""Functions of `chasles` whose first argument is a robot, and that are not methods of robots."""


def suggested(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for an unknown name: its equivalent in chasles, or similar names."""
    return foreign(name, known) or suggest(name, known)


def foreign(name: str, known: Iterable[str]) -> str:
    """Return the equivalent in chasles of a name from another library, or an empty string."""
    plain = name.lower().removeprefix("compute_").removeprefix("get_").removeprefix("mj_")
    ours = FOREIGN.get(name.lower()) or FOREIGN.get(plain) or ""
    return f"it is called {ours!r} here" if ours.partition(".")[0] in known else ""


KEYWORDS = {
    "link": "frame",
    "body": "frame",
    "frame_name": "frame",
    "link_name": "frame",
    "end_effector": "frame",
    "start": "guess",
    "initial": "guess",
    "q0": "guess",
    "q_init": "guess",
    "pose": "targets",
    "goal": "targets",
    "dq": "qd",
    "qdot": "qd",
    "ddq": "qdd",
    "qddot": "qdd",
    "fext": "f_ext",
}
"""Other names for keyword arguments, and the corresponding names in chasles."""


ELSEWHERE = {
    "ground": "pass contacts=chasles.contact.file_pairs(robot, ground=True)",
    **dict.fromkeys(
        ("self_collision", "self_collisions", "self_contact"),
        "use contacts=chasles.contact.file_pairs(robot, own=False)",
    ),
}
"""Remedies for keyword arguments that belong to another function or have another name."""


def keyword(name: str, known: Iterable[str]) -> str:
    """Return a remedy for an unknown keyword argument."""
    known = list(known)
    if name in ELSEWHERE and {"contacts", "own"} & set(known):
        return ELSEWHERE[name]
    ours = KEYWORDS.get(name, "")
    return f"did you mean {ours!r}?" if ours in known else suggest(name, known)


def suggest(name: object, known: Iterable[str]) -> str:
    """Suggest similar names for a misspelled name, or list the known names."""
    names = list(known)
    return one_of(name, names, "it has") if names else "there are none"


MOST_NAMES = 24
"""Maximum number of names listed."""


def one_of(name: object, known: Iterable[str], otherwise: str = "use one of") -> str:
    """Suggest similar names for a misspelled name, or list the valid names after `otherwise`."""
    names = list(known)
    listed = ", ".join(map(repr, names[:MOST_NAMES])) + ", ..." * (len(names) > MOST_NAMES)
    return similar(name, names) or f"{otherwise} {listed}"


def similar(name: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Suggest names similar to a misspelled name, ignoring case; return "" if there are none.

    `cutoff` is the smallest similarity, between 0 and 1 (`difflib.get_close_matches`).
    """
    import difflib

    if not isinstance(name, str):
        return ""
    plain = {each.lower(): each for each in known}
    close = [plain[each] for each in difflib.get_close_matches(name.lower(), plain, 3, cutoff)]
    return f"did you mean {', '.join(map(repr, close))}?" if close else ""


def with_suggestions(function: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """Return a function whose errors for wrong calls name the remedy.

    An unknown keyword argument suggests a known one, and a missing or superfluous argument shows
    the form of the call. `name` is the name of the function in messages, as in "Robot.lock".
    """

    @wraps(function)
    def called(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except (AttributeError, TypeError) as error:
            if isinstance(error, ChaslesError):
                raise
            check_robot_given(function, arguments, named)
            fault = misuse(function, arguments, named) if isinstance(error, TypeError) else None
            if fault is None:
                raise
            title = (name or function.__qualname__).removesuffix(".__init__")
        problem, remedy = fault(title)
        raise ArgumentError("E-CALL-422", f"{title}() {problem}", remedy)

    return called


def check_robot_given(
    function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Raise an error if the argument `robot` of a function is not a robot."""
    from inspect import signature

    known = signature(function)
    try:
        given = known.bind(*arguments, **named).arguments
    except TypeError:
        return
    robot = given.get("robot")
    if "robot" not in given or robot is known.parameters["robot"].default:
        return
    if not (hasattr(robot, "model") and hasattr(robot, "joints")):
        problem = f"`robot` must be a Robot, not {type(robot).__name__}"
        remedy = "pass a robot, as returned by chasles.load"
        raise ArgumentError("E-CALL-423", problem, remedy, part=function.__name__)


def misuse(
    function: Callable[..., Any], arguments: Sequence[Any], named: Mapping[str, Any]
) -> Callable[[str], tuple[str, str]] | None:
    """Return None if the arguments fit a function, otherwise a function that states the fault.

    The result maps the name of the function to the problem and the remedy.
    """
    from inspect import signature

    known = signature(function)
    try:
        known.bind(*arguments, **named)
    except TypeError as error:
        problem = str(error)
    else:
        return None
    parameters = dict(known.parameters)
    wrong = next((name for name in named if name not in parameters), None)
    if wrong is not None and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        others = [name for name in parameters if name != "self"]
        problem, hint = f"got an unexpected keyword argument {wrong!r}", keyword(wrong, others)
    else:
        hint = ""
    problem = problem.replace("missing a required", "is missing the required")
    problem = problem.replace("too many positional", "got too many positional")
    problem = problem.replace("multiple values", "got multiple values")

    def stated(title: str) -> tuple[str, str]:
        if hint and not hint.startswith("it has"):
            return problem, hint
        example = _example(function.__doc__ or "", title.rpartition(".")[2])
        form = f"call {_form(title, parameters)}{example and f', as in {example}'}"
        return problem, "; ".join(filter(None, (hint, form)))

    return stated


def _form(title: str, parameters: Mapping[str, Any]) -> str:
    """Return a call of a function with its required arguments, as in "attach(frame, mass=...)"."""
    owner, _, name = title.rpartition(".")
    own = [*parameters.values()][bool(owner) or "self" in parameters :]
    given = [
        f"{p.name}=..." if p.kind is p.KEYWORD_ONLY else p.name
        for p in own
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    return f"{name}({', '.join([*given, *['...'] * (len(given) < len(own))])})"


def _example(text: str, name: str) -> str:
    """Return the first call of a function in the examples of a docstring, or an empty string."""
    for line in text.splitlines():
        first = line.find(f"{name}(") if line.lstrip().startswith(">>> ") else -1
        if first < 0 or (line[first - 1].isalnum() or line[first - 1] == "_"):
            continue
        depth = 0
        for k, letter in enumerate(line[first:], first + 1):
            depth += (letter in "([{") - (letter in ")]}")
            if letter == ")" and not depth:
                return line[first:k]
    return ""


def suggest_keywords(module: ModuleType, without: Collection[str]) -> None:
    """Add suggestions for keyword arguments to the functions and classes in `module.__all__`.

    Names in `without` are left as they are.
    """
    for name in module.__all__:
        if name not in without:
            vars(module)[name] = suggesting(vars(module).get(name))


def suggesting(value: Any) -> Any:
    """Return a function or class whose errors for wrong calls name the remedy, or another value.

    A function is also replaced in the module that defines it, so that it can be pickled.
    """
    if isinstance(value, type) and isinstance(vars(value).get("__init__"), FunctionType):
        value.__init__ = with_suggestions(value.__init__)  # type: ignore[misc]
    elif isinstance(value, FunctionType):
        name, own = value.__name__, vars(sys.modules[value.__module__])
        called = with_suggestions(value)
        if own.get(name) is value:
            own[name] = called
        return called
    return value
