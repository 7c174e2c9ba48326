"""The table of checks: one row each, with what it finds, why that matters and what to do."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from chasles.lint import bodies, joints, modelling
from chasles.lint.sheet import Found, Severity, Sheet


class Check(NamedTuple):
    """A row. finds: in words; find: from a file to what is wrong in it. why: what that does.
    remedy: what to do.

    repair: the row of `chasles.lint.repair.REPAIRS` that can do it, if one can.
    """

    severity: Severity
    finds: str
    find: Callable[[Sheet], Iterator[Found]]
    why: str
    remedy: str
    repair: str = ""


_NO_BODY = "no body has it: energies can be negative and simulations diverge"
_SIMULATORS = "simulators and planners hold the joint still, or push it without end"
_TYPING = "one of the two is probably a slip; balance and gaits lean to one side"

CHECKS: dict[str, Check] = {
    "refused": Check("error", "a file that does not load, and why", joints.refused, "nothing can be computed", "correct the file"),
    "number": Check("error", "words where numbers should be", joints.number, "the file cannot be loaded", "give finite numbers"),
    "recovered": Check("warning", "XML that is malformed and inertias that are incomplete, which are read all the same", joints.recovered, "other readers refuse the file, or take it otherwise", "correct the file"),
    "negative-mass": Check("error", "masses below zero", bodies.impossible("negative-mass"), _NO_BODY, "give the true mass, in kg"),
    "not-positive": Check("error", "rotational inertias that are not positive definite", bodies.impossible("not-positive"), _NO_BODY, "give moments about the centre of mass, in its axes; check signs of the products", "inertia"),
    "triangle": Check("error", "principal moments of which one exceeds the sum of the others", bodies.impossible("triangle"), _NO_BODY, "give moments about the centre of mass, in its axes, from the design", "inertia"),
    "no-mass": Check("warning", "moments without a mass", bodies.impossible("no-mass"), "inertia without mass is a limit that no body reaches", "give the link its mass, or no inertia"),
    "singular": Check("warning", "a principal moment of zero, and others that are not", bodies.impossible("singular"), "all mass lies on a line: a turn about it takes no torque", "give the small moment too"),
    "zero-mass": Check("warning", "moving links without mass that carry none either", bodies.zero_mass, "forces accelerate it without bound unless others move with it", "give it a mass and moments, or fix the joint"),
    "virtual": Check("note", "moving links without mass between two joints", bodies.virtual, "forward dynamics loses digits where what it carries is light", "nothing, where a place between two joints is meant"),
    "point-mass": Check("note", "masses without moments", bodies.point_mass, "a turn about its centre takes no torque", "give its moments, unless a point is meant"),
    "placeholder": Check("warning", "the unit matrix as an inertia", bodies.placeholder, "such moments are of a body of metres, and swamp all others", "give the true moments"),
    "copied": Check("note", "links with every number of the inertia of the link that carries them", bodies.copied, "a copy that was not edited has the wrong inertia", "compare with the design"),
    "density": Check("warning", "mass and moments of a body denser than osmium, or of a box lighter than 5 kg/m3", bodies.density, "a mass in g or moments in kg mm2 are wrong by 1e3 or 1e6", "check the units: kg, m, kg m2"),
    "size": Check("warning", "joints, centres of mass and shapes of more than 30 m", bodies.size, "lengths in mm are wrong by 1e3", "give metres, or scale the mesh"),
    "degrees": Check("warning", "whole numbers of more than two turns as limits, places turned by more than a turn", joints.degrees, "an angle in degrees is wrong by 57", "give radians"),
    "limit-missing": Check("warning", "revolute and prismatic joints of URDF without limits", joints.missing, "URDF needs it; readers refuse the file, or take 0", "add lower, upper, effort and velocity, or make it continuous"),
    "limit-inverted": Check("error", "a lower limit above the upper one", joints.inverted, "no position is within the limits", "exchange the two", "limits"),
    "limit-empty": Check("warning", "equal limits", joints.empty, "a joint that cannot move still has a coordinate", "give its range, or make it fixed"),
    "negative": Check("warning", "armature, damping or friction below zero", joints.negative, "it adds energy without end; chasles and others read it as 0, or refuse it", "give zero or a positive number"),
    "powerless": Check("warning", "limits of effort or velocity that are zero or negative", joints.powerless, _SIMULATORS, "give what the drive can do, or leave it out"),
    "unknown-link": Check("error", "joints of links that are not there", joints.unknown_link, "the tree cannot be built", "correct the name, or add the link"),
    "unconnected": Check("error", "links without a joint", joints.unconnected, "it belongs to no robot, or is a second one", "connect it by a joint, or remove it"),
    "reference": Check("warning", "transmissions and extensions that name parts that are not there", joints.reference, "what it says is of no effect", "correct the name, or remove it"),
    "mimic": Check("error", "followers of joints that are not there, fixed, or following in a circle; multiplier 0", joints.mimic, "it cannot follow", "name a moving joint that does not follow it"),
    "mimic-range": Check("note", "followers that leave their own limits within those of their leader", joints.mimic_range, "it hits its own stops before its leader does", "correct multiplier and offset, or one of the ranges"),
    "loop": Check("error", "loops that no position closes, or that let nothing move", joints.loop, "the mechanism cannot be assembled, or cannot move", "check lengths, axes and types of the joints that close it"),
    "loop-start": Check("note", "loops that are open where all coordinates are zero", joints.loop_start, "states near zero must be assembled first", "use robot.assemble, or close it at zero"),
    "center-outside": Check("warning", "centres of mass outside the box around a link's shapes, by a quarter of it", bodies.outside, "gravity torques follow the centre of mass", "check its frame, its signs and its units"),
    "gyration": Check("warning", "radii of gyration beyond the shapes, or below a fifth of the uniform solid's", bodies.gyration, "moments and shapes belong to different bodies, or units", "compute moments from the shapes, or scale the meshes"),
    "volume": Check("warning", "masses of less than 5 or more than 30,000 kg/m3 of a link's shapes", bodies.volume, "mass and shapes belong to different bodies, or units", "check kg and m, and the scale of meshes"),
    "slender": Check("note", "links whose mass and moments are of a box over 50 times as long as thick", modelling.slender, "such a link bends: the rigid body is stiffer than the machine", "check the moments, or split it by joints with springs"),
    "far-frame": Check("note", "centres of mass over 30 radii of gyration from the joint that moves the link", modelling.far_frame, "digits are lost: 4 of 16 at 100 radii of gyration", "move the joint's frame nearer, or check the units of the inertia"),
    "lossless": Check("note", "joints without damping and friction, where others of the robot have some", modelling.lossless, "torques and motions differ by what these joints lose", "measure or estimate the losses of all joints, or of none"),
    "rotor": Check("note", "URDF joints geared by 10 or more (`mechanicalReduction`) without armature", modelling.rotor, "the rotor's inertia counts by the square of the ratio, often more than the link's", "give the joint its armature: rotor inertia times ratio squared"),
    "left-right": Check("note", "parts named left and right whose inertias are no mirror images, by 5 %", bodies.unlike_bodies, _TYPING, "compare with the design"),
    "left-right-limits": Check("note", "parts named left and right with other ranges, efforts or velocities", bodies.unlike_limits, _TYPING, "compare with the design"),
}  # fmt: skip
"""By name, in the order of their findings at one place."""
