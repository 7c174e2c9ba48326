"""Table of lint checks, with their severities, descriptions and remedies."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from chasles.lint import bodies, joints, modelling
from chasles.lint.sheet import Found, Severity, Sheet


class Check(NamedTuple):
    """A lint check.

    Attributes
    ----------
    finds
        Description of the problem that the check detects.
    find
        Function that yields the findings in a file.
    why
        Effect of the problem on results.
    remedy
        Action to take.
    repair
        Key of the repair in `chasles.lint.repair.REPAIRS`, or "".
    """

    severity: Severity
    finds: str
    find: Callable[[Sheet], Iterator[Found]]
    why: str
    remedy: str
    repair: str = ""


_NO_BODY = "physically impossible: energies can be negative and simulations diverge"
_SIMULATORS = "simulators and planners lock the joint, or apply unbounded forces to it"
_TYPING = "one of the two is probably a mistake; balance and gaits become asymmetric"

CHECKS: dict[str, Check] = {
    "refused": Check("error", "files that cannot be loaded", joints.refused, "the robot cannot be used", "correct the file"),
    "number": Check("error", "text where numbers are expected", joints.number, "the file cannot be loaded", "give finite numbers"),
    "recovered": Check("warning", "malformed XML and incomplete inertias that are still read", joints.recovered, "other readers reject the file or interpret it differently", "correct the file"),
    "misspelled": Check("warning", "unknown elements and attributes whose names are similar to known ones, in URDF and SDF files", joints.misspelled, "readers ignore them and use default values", "correct the name"),
    "negative-mass": Check("error", "negative masses", bodies.impossible("negative-mass"), _NO_BODY, "give the actual mass in kg"),
    "not-positive": Check("error", "rotational inertias that are not positive definite", bodies.impossible("not-positive"), _NO_BODY, "give moments about the center of mass, along the axes of the inertial frame; check the signs of the products of inertia", "inertia"),
    "triangle": Check("error", "principal moments that violate the triangle inequality", bodies.impossible("triangle"), _NO_BODY, "give moments about the center of mass, along the axes of the inertial frame, from the CAD model", "inertia"),
    "no-mass": Check("warning", "moments of inertia without mass", bodies.impossible("no-mass"), "no physical body has inertia without mass", "give the mass of the link, or remove its moments of inertia"),
    "singular": Check("warning", "links with some, but not all, principal moments equal to zero", bodies.impossible("singular"), "all mass lies on a line, and rotation about this line takes no torque", "give all principal moments, including the smallest"),
    "zero-mass": Check("warning", "moving links without mass that do not carry links with mass", bodies.zero_mass, "any force accelerates the link without bound", "give the link a mass and moments of inertia, or make the joint fixed"),
    "weightless-shape": Check("warning", "moving links with shapes but without mass, between two joints", bodies.weightless_shape, "the weight and inertia of the link are missing in all torques and motions", "give the mass, center of mass and moments of inertia of the link; in URDF, add `<inertial>`"),
    "virtual": Check("note", "moving links without mass or shapes between two joints", bodies.virtual, "forward dynamics is less accurate if the carried links are light", "keep the link if it is an intermediate frame between two joints"),
    "point-mass": Check("note", "links with mass but without moments of inertia", bodies.point_mass, "rotation of the link about its center of mass takes no torque", "give the moments of inertia, unless a point mass is intended"),
    "placeholder": Check("warning", "rotational inertias that are identity matrices", bodies.placeholder, "these moments correspond to a body several meters in size, and dominate all others", "give the actual moments of inertia"),
    "copied": Check("note", "links with the same inertia as their parent link", bodies.copied, "the inertia was probably copied and not edited", "compare with the CAD model"),
    "density": Check("warning", "mass and moments of inertia that imply a density above that of osmium, or below 5 kg/m3 for a box", bodies.density, "a mass in g is wrong by a factor of 1e3, and moments in kg mm2 by a factor of 1e6", "check the units: kg, m, kg m2"),
    "size": Check("warning", "joints and centers of mass more than 30 m from the origin of their link, and shapes larger than 30 m", bodies.size, "lengths in mm are wrong by a factor of 1e3", "use meters, or scale the mesh"),
    "degrees": Check("warning", "joint limits that are integers above two turns, and orientation angles above one turn", joints.degrees, "an angle in degrees is wrong by a factor of 57", "give radians"),
    "limit-missing": Check("warning", "revolute and prismatic joints without limits in URDF files", joints.missing, "URDF requires limits; readers reject the file or use 0", "add lower, upper, effort and velocity limits, or make the joint continuous"),
    "limit-inverted": Check("error", "lower limits above the upper limit", joints.inverted, "no position is within the limits", "swap the limits", "limits"),
    "limit-empty": Check("warning", "equal lower and upper limits", joints.empty, "a joint that cannot move still has a coordinate", "correct the limits, or make the joint fixed"),
    "negative": Check("warning", "negative armatures, damping, friction, time constants or fluid densities", joints.negative, "negative values add energy without bound; chasles and other readers replace them by 0 or reject them", "give zero or a positive number"),
    "powerless": Check("warning", "effort or velocity limits that are zero or negative", joints.powerless, _SIMULATORS, "give the actuator's limits, or omit the limits"),
    "unknown-link": Check("error", "joints whose links do not exist", joints.unknown_link, "the kinematic tree cannot be built", "correct the name, or add the link"),
    "unconnected": Check("error", "links without a joint", joints.unconnected, "the link is not part of the robot, or forms a second robot", "connect the link with a joint, or remove it"),
    "reference": Check("warning", "transmissions and extensions that refer to missing parts", joints.reference, "the reference has no effect", "correct the name, or remove the reference"),
    "mimic": Check("error", "mimic joints whose leader is missing, fixed or part of a cycle, or whose multiplier is 0", joints.mimic, "the joint cannot follow its leader", "name a moving joint that does not mimic this joint"),
    "mimic-range": Check("note", "mimic joints that exceed their limits while their leader is within its limits", joints.mimic_range, "the joint reaches its limits before its leader does", "correct the multiplier and offset, or the limits of one of the joints"),
    "loop": Check("error", "loops that cannot be closed, or that lock the mechanism", joints.loop, "the mechanism cannot be assembled, or cannot move", "check the lengths of the links, and the axes and types of the loop joints"),
    "loop-start": Check("note", "loops that are open in the neutral configuration", joints.loop_start, "configurations near the neutral one violate the loop constraint", "close the loop with robot.assemble, or change the file so that it is closed in the neutral configuration"),
    "mesh-missing": Check("warning", "mesh files that do not exist", bodies.mesh_missing, "the shape is neither drawn nor used for contacts and distances", "correct the path, or add the folder of the package to ROS_PACKAGE_PATH"),
    "center-outside": Check("warning", "centers of mass outside the bounding box of a link's shapes by more than a quarter of its size", bodies.outside, "gravity torques depend on the center of mass", "check the frame, signs and units of the center of mass"),
    "gyration": Check("warning", "radii of gyration larger than the shapes, or less than a fifth of the value for uniform density", bodies.gyration, "moments and shapes belong to different bodies, or have inconsistent units", "compute the moments from the shapes, or scale the meshes"),
    "volume": Check("warning", "links whose mass and shapes imply a density below 5 or above 30,000 kg/m3", bodies.volume, "mass and shapes belong to different bodies, or have inconsistent units", "check the units (kg, m) and the scale of meshes"),
    "slender": Check("note", "links whose mass and moments of inertia correspond to a box more than 50 times as long as thick", modelling.slender, "slender links bend; the rigid model is stiffer than the machine", "check the moments of inertia, or split the link with joints and springs"),
    "far-frame": Check("note", "centers of mass more than 30 radii of gyration from the joint that moves the link", modelling.far_frame, "accuracy is lost: 4 of 16 digits at 100 radii of gyration", "move the joint's frame closer, or check the units of the inertia"),
    "lossless": Check("note", "joints without damping and friction in a robot that has them at other joints", modelling.lossless, "computed torques and motions omit losses at these joints", "give damping and friction for all joints, or for none"),
    "rotor": Check("note", "URDF joints with a gear ratio of 10 or more (`mechanicalReduction`) and no armature", modelling.rotor, "the reflected rotor inertia grows with the square of the ratio, and often exceeds the inertia of the link", "set the armature of the joint to the rotor inertia times the ratio squared"),
    "left-right": Check("note", "left and right parts whose inertias are not mirror images within 5 %", bodies.unlike_bodies, _TYPING, "compare with the CAD model"),
    "left-right-limits": Check("note", "left and right joints with different ranges, effort limits or velocity limits", bodies.unlike_limits, _TYPING, "compare with the CAD model"),
}  # fmt: skip
"""Checks by name, in the order in which findings on the same line are listed."""
