"""Descriptions of the methods that compute each function, and their requirements on a robot."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chasles.entry_points import Sourced
from chasles.model import WORLD, Model
from chasles.model.validate import is_massless, is_solid

Need = Callable[[Model, Mapping[str, Any]], str]
"""Function that checks a model and options against a requirement.

The function returns the reason why the requirement is not met, or an empty string if it is met.
"""


def all_of(*needs: Need) -> Need:
    """Combine several requirements into one.

    The combined requirement returns the reason for the first unmet requirement, or an empty string.
    """
    return lambda model, options: next(filter(None, (n(model, options) for n in needs)), "")


def floating_base(model: Model, options: Mapping[str, Any]) -> str:
    """Require a floating base, i.e. a single free joint that carries all bodies."""
    return "" if model.floating else "it needs a floating base: a single free root joint"


def massive_joints(model: Model, options: Mapping[str, Any]) -> str:
    """Require nonzero inertia at every joint, so that the mass matrix M can be factored.

    If some joint accelerations are known, only the block of M for the remaining joints is factored.
    """
    idle = [repr(name) for name in model.idle if name not in options.get("known", ())]
    if not idle:
        return ""
    moving = f"joint {idle[0]} moves" if len(idle) == 1 else f"joints {', '.join(idle)} move"
    bases = [body for body in model.bodies if body.parent == WORLD and body.joint.floating]
    empty = [b.data.child for b in bases if b.data.name in model.idle and is_massless(b.inertia)]
    why = f": the base link {empty[0]!r} has no mass" if empty else ""
    return f"the mass matrix of the tree is singular, because {moving} no inertia{why}"


def unheld_base(model: Model, options: Mapping[str, Any]) -> str:
    """Require that no loop or coupling constrains a floating base, so that it moves freely."""
    for constraint in model.constraints:
        if model.floating and 0 in constraint.bodies:
            return f"{constraint.name!r} constrains the floating base, which must move freely"
    return ""


def driven_joints(model: Model, options: Mapping[str, Any]) -> str:
    """Require that `known` lists every joint except the floating base."""
    rest = {model.bodies[i].data.name for i in model.movers if i != 0}
    found = rest == set(options.get("known", ()))
    return "" if found else "it needs every joint except the floating base in `known`"


def positive_inertias(model: Model, options: Mapping[str, Any]) -> str:
    """Require that every body has an invertible inertia, and that the robot has no rotors."""
    for body in model.parts:
        if not is_solid(body.inertia):
            return (
                f"it divides by every inertia, but link {body.name!r} lacks mass or a "
                "moment of inertia"
            )
    return ""


def solid_bodies(model: Model, options: Mapping[str, Any]) -> str:
    """Require that links with an inertia parameter have mass and moments of inertia.

    All other inertias may be singular: auxiliary inertias are added to them before compilation.
    """
    named = {name.rpartition(".")[0] for name in options.get("parameters", ())}
    for link in named & {link.name for link in model.source.links}:
        i = model.frames[link].body
        if i != WORLD and not is_solid(model.bodies[i].inertia):
            return (
                f"it inverts every inertia, but link {link!r} lacks mass or a moment of inertia "
                "and has parameters"
            )
    return ""


def steady_gears(model: Model, options: Mapping[str, Any]) -> str:
    """Require that rotor gear ratios do not depend on the configuration."""
    for rotor in model.rotors:
        if rotor.path:
            return f"it does not support the inertia of tendon {rotor.name!r}"
    return ""


def plain_loads(model: Model, options: Mapping[str, Any]) -> str:
    """Require that a model with passive loads has no parameters and does not depend on time.

    The derivatives of passive loads are computed separately, with respect to q and qd only.
    """
    if model.loaded and (options.get("parameters") or model.timed):
        what = "time" if model.timed else "parameters"
        return (
            f"it does not support {what} together with springs, tendons, gravity "
            "compensation or fluid forces"
        )
    return ""


def undriven_joints(model: Model, options: Mapping[str, Any]) -> str:
    """Require that no joint has a prescribed motion, so that body velocities are linear in qd."""
    for i in model.driven:
        return f"joint {model.bodies[i].data.name!r} has a prescribed motion"
    return ""


def holonomic_joints(model: Model, options: Mapping[str, Any]) -> str:
    """Require holonomic joints, because other joints add terms to Lagrange's equations."""
    for body in model.bodies:
        if not body.joint.holonomic:
            return f"joint {body.data.name!r} is nonholonomic"
    return ""


@dataclass(frozen=True)
class Method:
    """A method for computing a function.

    Attributes
    ----------
    source
        "module:function", or "module" if the function has the name of its module. The module is in
        this package and is loaded on first use.
    inertias
        Model transformation ("moments" or "products", see `model.passes`) that regroups inertias.
        Empty unless the result depends solely on the equations of motion, which regrouping does not
        change.
    passes
        Names of other model transformations (`model.passes`) that the method always requires.
    followers
        False if mimic joints are not supported, as in recursions that solve for one joint
        acceleration at a time.
    by_name
        True if the method runs only when selected, because other methods need fewer operations.
    smooth
        False if differentiating the program does not give the derivative of the result, as in an
        iteration that ends early.
    needs
        Function that checks requirements on the robot and the options.
    steep
        True if the operation count grows as n^3 or faster, where n is the number of degrees of
        freedom. Such methods suit arms only.
    shallow
        True if the operation count grows with the square of the tree depth or faster. Such methods
        suit trees with short branches only.
    """

    name: str
    source: str
    inertias: str = ""
    passes: tuple[str, ...] = ()
    followers: bool = True
    by_name: bool = False
    smooth: bool = True
    needs: Need | None = None
    steep: bool = False
    shallow: bool = False

    algorithm = Sourced("chasles.algorithms")
    """Function that implements the method."""
