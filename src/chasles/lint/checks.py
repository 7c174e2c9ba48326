"""Table of checks, with the findings, their effect and the remedy for each check."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from chasles.lint import bodies, joints, modelling
from chasles.lint.sheet import Found, Severity, Sheet


class Check(NamedTuple):
    """A row of the table of checks.

    `finds` describes the findings, and `find` computes them from a file. `why` describes the effect
    of the findings, and `remedy` is the action to take. `repair` is the key of the repair in
    `chasles.lint.repair.REPAIRS`, if there is one.
    """

    severity: Severity
    finds: str
    find: Callable[[Sheet], Iterator[Found]]
    why: str
    remedy: str
    repair: str = ""


_NO_BODY = "physically impossible: energies can be negative and simulations diverge"
_SIMULATORS = "simulators and planners lock the joint, or apply unbounded forces to it"
_TYPING = "one of them is probably a mistake; balance and gaits become asymmetric"

CHECKS: dict[str, Check] = {
    "refused": Check("error", "files that do not load", joints.refused, "the robot cannot be used", "correct the file"),
    "number": Check("error", "text where numbers are expected", joints.number, "the file cannot be loaded", "give finite numbers"),
    "recovered": Check("warning", "malformed XML and incomplete inertias that are still read", joints.recovered, "other readers reject the file or interpret it differently", "correct the file"),
    "negative-mass": Check("error", "negative masses", bodies.impossible("negative-mass"), _NO_BODY, "give the true mass, in kg"),
    "not-positive": Check("error", "rotational inertias that are not positive definite", bodies.impossible("not-positive"), _NO_BODY, "give moments about the center of mass, along its axes; check the signs " "of the products", "inertia"),
    "triangle": Check("error", "principal moments that violate the triangle inequality", bodies.impossible("triangle"), _NO_BODY, "give moments about the center of mass, along its axes, from the CAD " "model", "inertia"),
    "no-mass": Check("warning", "moments without a mass", bodies.impossible("no-mass"), "no physical body has inertia without mass", "give the link its mass, or remove its inertia"),
    "singular": Check("warning", "principal moments of which some, but not all, are zero", bodies.impossible("singular"), "all mass lies on a line: rotation about it takes no torque", "give the small moment as well"),
    "zero-mass": Check("warning", "moving links without mass that carry no mass either", bodies.zero_mass, "any force accelerates the link without bound", "give it a mass and moments, or fix the joint"),
    "virtual": Check("note", "moving links without mass between two joints", bodies.virtual, "forward dynamics loses digits if the links it carries are light", "none, if the link is an intermediate frame between two joints"),
    "point-mass": Check("note", "masses without moments", bodies.point_mass, "rotation about its center of mass takes no torque", "give its moments, unless a point mass is intended"),
    "placeholder": Check("warning", "identity matrices as inertias", bodies.placeholder, "such moments belong to a body several meters large and dominate all " "others", "give the true moments"),
    "copied": Check("note", "links with exactly the inertia of their parent link", bodies.copied, "a copy that was never edited has the wrong inertia", "compare with the CAD model"),
    "density": Check("warning", "mass and moments of a body denser than osmium, or of a box below 5 kg/m3", bodies.density, "a mass in g or moments in kg mm2 are wrong by 1e3 or 1e6", "check the units: kg, m, kg m2"),
    "size": Check("warning", "joints and centers of mass more than 30 m away, and shapes larger than 30 m", bodies.size, "lengths in mm are wrong by 1e3", "use meters, or scale the mesh"),
    "degrees": Check("warning", "limits that are integers above two turns, and orientations of more than " "a turn", joints.degrees, "an angle in degrees is wrong by a factor of 57", "give radians"),
    "limit-missing": Check("warning", "revolute and prismatic joints of URDF without limits", joints.missing, "URDF requires limits; readers reject the file or use 0", "add lower, upper, effort and velocity, or make it continuous"),
    "limit-inverted": Check("error", "lower limits above the upper limit", joints.inverted, "no position is within the limits", "swap the limits", "limits"),
    "limit-empty": Check("warning", "equal limits", joints.empty, "a joint that cannot move still has a coordinate", "correct its range, or make it fixed"),
    "negative": Check("warning", "negative armature, damping, friction, time constant or fluid density", joints.negative, "it adds energy without bound; chasles and others read it as 0 or reject " "it", "give zero or a positive number"),
    "powerless": Check("warning", "effort or velocity limits that are zero or negative", joints.powerless, _SIMULATORS, "give the limits of the drive, or omit them"),
    "unknown-link": Check("error", "joints whose links do not exist", joints.unknown_link, "the kinematic tree cannot be built", "correct the name, or add the link"),
    "unconnected": Check("error", "links without a joint", joints.unconnected, "the link is not part of the robot, or forms a second robot", "connect it with a joint, or remove it"),
    "reference": Check("warning", "transmissions and extensions that name parts that do not exist", joints.reference, "the reference has no effect", "correct the name, or remove it"),
    "mimic": Check("error", "mimic joints whose leader is missing, fixed or part of a cycle; " "multiplier 0", joints.mimic, "the joint cannot follow its leader", "name a moving joint that does not follow this one"),
    "mimic-range": Check("note", "mimic joints that exceed their own limits while their leader is within its limits", joints.mimic_range, "the joint reaches its own limits before its leader does", "correct the multiplier and offset, or one of the ranges"),
    "loop": Check("error", "loops that cannot be closed, or that lock the mechanism", joints.loop, "the mechanism cannot be assembled, or cannot move", "check lengths, axes and types of the loop joints"),
    "loop-start": Check("note", "loops that are open at zero coordinates", joints.loop_start, "states near zero must be assembled first", "use robot.assemble, or close the loop at zero"),
    "center-outside": Check("warning", "centers of mass outside the bounding box of a link's shapes by a " "quarter of its size", bodies.outside, "gravity torques depend on the center of mass", "check its frame, its signs and its units"),
    "gyration": Check("warning", "radii of gyration larger than the shapes, or below a fifth of the " "uniform solid's", bodies.gyration, "moments and shapes belong to different bodies or units", "compute moments from the shapes, or scale the meshes"),
    "volume": Check("warning", "densities below 5 or above 30,000 kg/m3, from a link's mass and shapes", bodies.volume, "mass and shapes belong to different bodies or units", "check the units (kg, m) and the scale of meshes"),
    "slender": Check("note", "links whose mass and moments are those of a box over 50 times as long " "as thick", modelling.slender, "such a link bends: the rigid model is stiffer than the machine", "check the moments, or split the link with joints and springs"),
    "far-frame": Check("note", "centers of mass over 30 radii of gyration from the joint that moves the " "link", modelling.far_frame, "digits are lost: 4 of 16 at 100 radii of gyration", "move the joint's frame closer, or check the units of the inertia"),
    "lossless": Check("note", "joints without damping and friction, where other joints of the robot " "have some", modelling.lossless, "torques and motions omit the losses of these joints", "measure or estimate the losses of all joints, or of none"),
    "rotor": Check("note", "URDF joints geared by 10 or more (`mechanicalReduction`) without armature", modelling.rotor, "the reflected rotor inertia grows with the square of the ratio, and often " "exceeds the link's", "give the joint its armature: rotor inertia times ratio squared"),
    "left-right": Check("note", "left and right parts whose inertias are not mirror images within 5 %", bodies.unlike_bodies, _TYPING, "compare with the CAD model"),
    "left-right-limits": Check("note", "left and right parts with different ranges, efforts or velocities", bodies.unlike_limits, _TYPING, "compare with the CAD model"),
}  # fmt: skip
"""Checks by name; findings at the same place are in this order."""
