"""Small robot files for the tests of lint: a valid one, and one that fails each check."""

from dataclasses import dataclass

LIMIT = '<limit lower="-1" upper="2" effort="50" velocity="3"/>'


def inertial(mass: object, xx: object, yy: object, zz: object, xyz: str = "0 0 0") -> str:
    return (
        f'<inertial><origin xyz="{xyz}"/><mass value="{mass}"/>'
        f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


def link(name: str, inside: str = inertial(2, 0.02, 0.03, 0.04)) -> str:
    return f'  <link name="{name}">{inside}</link>\n'


def joint(name: str, parent: str, child: str, inside: str = LIMIT, kind: str = "revolute") -> str:
    return (
        f'  <joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="0 0 1"/>{inside}</joint>\n'
    )


def urdf(*parts: str) -> str:
    return f'<robot name="arm">\n{"".join(parts)}</robot>\n'


def arm(tip: str = inertial(1, 0.01, 0.02, 0.02), limit: str = LIMIT, more: str = "") -> str:
    """Return an arm of links base, upper and tip with two joints."""
    return urdf(
        link("base"),
        link("upper", inertial(1.5, 0.01, 0.02, 0.02, "0.2 0 0")),
        link("tip", tip),
        joint("shoulder", "base", "upper"),
        joint("elbow", "upper", "tip", limit),
        more,
    )


def cross(inside: str) -> str:
    """Return an arm whose middle link, between two joints, has the given contents."""
    return urdf(
        link("base"),
        link("cross", inside),
        link("tip"),
        joint("yaw", "base", "cross"),
        joint("pitch", "cross", "tip").replace('"0 0 1"', '"0 1 0"'),
    )


@dataclass(frozen=True)
class Example:
    """File that fails a check: its text, the reported part and line, and words of the finding."""

    text: str
    part: str
    line: int
    words: str
    suffix: str = ".urdf"


SHAPE = '<collision>{}<geometry><box size="0.3 0.1 0.1"/></geometry></collision>'
ORIGIN = '<origin xyz="{}"/>'

TWINS = urdf(
    link("base"),
    link("left_foot", inertial(1, 0.01, 0.02, 0.02)),
    link("right_foot", inertial("{mass}", 0.01, 0.02, 0.02)),
    joint("left_ankle", "base", "left_foot"),
    joint("right_ankle", "base", "right_foot", LIMIT.replace("-1", "{lower}")),
)

FOUR_BAR = """format = "mechanism"
name = "four_bar"
[[link]]
name = "ground"
[[link]]
name = "crank"
mass = 1.0
inertia = [0.01, 0.02, 0.02, 0, 0, 0]
[[link]]
name = "coupler"
mass = 2.0
inertia = [0.01, 0.2, 0.2, 0, 0, 0]
[[link]]
name = "rocker"
mass = 1.5
inertia = [0.01, 0.03, 0.03, 0, 0, 0]
[[joint]]
name = "a"
kind = "revolute"
parent = "ground"
child = "crank"
[[joint]]
name = "b"
kind = "revolute"
parent = "crank"
child = "coupler"
position = [0.5, 0, 0]
[[joint]]
name = "c"
kind = "revolute"
parent = "ground"
child = "rocker"
position = [1.0, 0, 0]
[[loop]]
name = "d"
kind = "revolute"
parent = "coupler"
child = "rocker"
position = [1.0, 0, 0]
child_position = [{length}, 0, 0]
"""

EXAMPLES: dict[str, Example] = {
    "refused": Example(
        arm(more=joint("again", "base", "tip")), "joint 'again'", 7, "already has a parent"
    ),
    "number": Example(arm(inertial("heavy", 1, 1, 1)), "link 'tip'", 4, "mass value is 'heavy'"),
    "recovered": Example(
        arm("<inertial><inertia/></inertial>"), "link 'tip'", 4, "<inertial> has no mass"
    ),
    "misspelled": Example(
        arm(limit=LIMIT.replace("effort", "efort")),
        "joint 'elbow'",
        6,
        "<limit> has the unknown attribute 'efort'",
    ),
    "negative-mass": Example(arm(inertial(-1, 0.01, 0.02, 0.02)), "link 'tip'", 4, "-1 kg"),
    "not-positive": Example(arm(inertial(1, -0.01, 0.02, 0.02)), "link 'tip'", 4, "-0.01"),
    "triangle": Example(
        arm(inertial(1, 0.01, 0.02, 0.04)), "link 'tip'", 4, "(0.01 + 0.02 < 0.04)"
    ),
    "no-mass": Example(arm(inertial(0, 0.01, 0.02, 0.02)), "link 'tip'", 4, "without mass"),
    "singular": Example(arm(inertial(1, 0, 0.02, 0.02)), "link 'tip'", 4, "singular"),
    "zero-mass": Example(arm(""), "link 'tip'", 4, "joint 'elbow' moves this link"),
    "weightless-shape": Example(
        cross(SHAPE.format("")), "link 'cross'", 3, "joint 'yaw' moves this link, which has shapes"
    ),
    "virtual": Example(
        cross(""),
        "link 'cross'",
        3,
        "joint 'yaw' moves this link",
    ),
    "point-mass": Example(
        arm(inertial(1, 0, 0, 0, "0.1 0 0")), "link 'tip'", 4, "1 kg without rotational"
    ),
    "placeholder": Example(arm(inertial(1, 1, 1, 1)), "link 'tip'", 4, "1 kg m2 about every"),
    "copied": Example(
        arm(inertial(1.5, 0.01, 0.02, 0.02, "0.2 0 0")), "link 'tip'", 4, "link 'upper'"
    ),
    "density": Example(arm(inertial(1000, 0.01, 0.02, 0.02)), "link 'tip'", 4, "kg/m3"),
    "size": Example(arm(limit=LIMIT + ORIGIN.format("0 0 350")), "joint 'elbow'", 6, "350 m from"),
    "degrees": Example(
        arm(limit=LIMIT.replace("-1", "-170").replace("2", "170")),
        "joint 'elbow'",
        6,
        "-170 to 170",
    ),
    "limit-missing": Example(arm(limit=""), "joint 'elbow'", 6, "without <limit>"),
    "limit-inverted": Example(
        arm(limit=LIMIT.replace("-1", "3")), "joint 'elbow'", 6, "3 is above the upper limit 2"
    ),
    "limit-empty": Example(
        arm(limit=LIMIT.replace("-1", "2")), "joint 'elbow'", 6, "both limits are 2"
    ),
    "negative": Example(
        arm(limit=LIMIT + '<dynamics damping="-0.1"/>'), "joint 'elbow'", 6, "damping is -0.1"
    ),
    "powerless": Example(
        arm(limit=LIMIT.replace("50", "0")), "joint 'elbow'", 6, "effort limit is 0"
    ),
    "unknown-link": Example(
        arm(more=joint("wrist", "tip", "hand")), "joint 'wrist'", 7, "no child link 'hand'"
    ),
    "unconnected": Example(
        arm(more=link("loose")), "link 'loose'", 7, "no joint connects the link"
    ),
    "reference": Example(
        arm(more='<transmission name="drive"><joint name="knee"/></transmission>'),
        "transmission 'drive'",
        7,
        "no joint 'knee'",
    ),
    "mesh-missing": Example(
        arm(
            inertial(1, 0.01, 0.02, 0.02)
            + '<visual><geometry><mesh filename="package://arm/tip.stl"/></geometry></visual>'
        ),
        "link 'tip'",
        4,
        "the mesh file 'package://arm/tip.stl' was not found",
    ),
    "mimic": Example(
        arm(limit=LIMIT + '<mimic joint="knee"/>'), "joint 'elbow'", 6, "no joint 'knee'"
    ),
    "mimic-range": Example(
        arm(limit=LIMIT + '<mimic joint="shoulder" multiplier="-1"/>'),
        "joint 'elbow'",
        6,
        "from -2 to 1, but the limits are -1 to 2",
    ),
    "loop": Example(
        FOUR_BAR.format(length=5.0), "loops 'd'", 0, "no configuration was found", ".toml"
    ),
    "loop-start": Example(
        FOUR_BAR.format(length=0.6), "robot 'four_bar'", 0, "a gap of 0.1", ".toml"
    ),
    "center-outside": Example(
        arm(inertial(1, 0.01, 0.02, 0.02, "0 0 0.5") + SHAPE.format("")),
        "link 'tip'",
        4,
        "450 mm outside",
    ),
    "gyration": Example(
        arm(inertial(1, 0.5, 0.5, 0.5) + SHAPE.format("")), "link 'tip'", 4, "866 mm"
    ),
    "volume": Example(
        arm(inertial(0.01, 1e-5, 8e-5, 8e-5) + SHAPE.format("")), "link 'tip'", 4, "3e+03 cm3"
    ),
    "slender": Example(
        arm(inertial(1, 4.0001e-4, 0.1604, 0.1608)), "link 'tip'", 4, "match a box 1.39 m long"
    ),
    "far-frame": Example(
        arm(inertial(1, 1e-4, 1e-4, 1e-4, "0.5 0 0")), "link 'tip'", 4, "41 radii of gyration"
    ),
    "lossless": Example(
        arm(limit=LIMIT + '<dynamics damping="0.1" friction="0.2"/>'),
        "robot 'arm'",
        0,
        "1 of 2 joints have neither damping nor friction: 'shoulder'",
    ),
    "rotor": Example(
        arm(
            more='<transmission name="drive"><joint name="elbow"/><actuator name="motor">'
            "<mechanicalReduction>100</mechanicalReduction></actuator></transmission>"
        ),
        "joint 'elbow'",
        7,
        "gear ratio is 100, but the armature is zero: the rotor inertia, multiplied by 10000, is",
    ),
    "left-right": Example(
        TWINS.format(mass=1.2, lower=-1), "link 'right_foot'", 4, "1.2 kg instead of 1 kg"
    ),
    "left-right-limits": Example(
        TWINS.format(mass=1, lower=-1.5), "joint 'right_ankle'", 6, "-1.5 to 2"
    ),
}
"""Examples by check."""
