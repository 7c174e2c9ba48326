"""Names of the elements and attributes of URDF and SDF files."""

from chasles.formats.xml_file import MOMENTS
from chasles.model import SHAPE_TRAITS
from chasles.model.joints import TYPES

ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "joint": ("type", *dict.fromkeys(key for row in TYPES.values() for key in row.data)),
    "parent": ("link",),
    "child": ("link",),
    "origin": ("xyz", "rpy"),
    "axis": ("xyz",),
    "axis2": ("xyz",),
    "limit": ("lower", "upper", "effort", "velocity", "acceleration", "jerk"),
    "dynamics": ("damping", "friction"),
    "mimic": ("joint", "multiplier", "offset"),
    "calibration": ("rising", "falling"),
    "safety_controller": ("soft_lower_limit", "soft_upper_limit", "k_position", "k_velocity"),
    "mass": ("value",),
    "inertia": MOMENTS,
    **{kind: tuple(key for key, _ in row.sizes) for kind, row in SHAPE_TRAITS.items()},
    "mesh": ("filename", "scale"),
    "color": ("rgba",),
    "texture": ("filename",),
}
"""Attributes of the elements of a URDF file. Every element may also have a name."""

URDF: dict[str, tuple[str, ...]] = {
    "robot": ("link", "joint", "material", "transmission", "gazebo", "sensor"),
    "link": ("inertial", "visual", "collision"),
    "inertial": ("origin", "mass", "inertia"),
    "visual": ("origin", "geometry", "material"),
    "collision": ("origin", "geometry"),
    "geometry": tuple(SHAPE_TRAITS),
    "material": ("color", "texture"),
    "joint": (
        *("origin", "parent", "child", "axis", "axis2", "limit", "dynamics", "mimic"),
        *("calibration", "safety_controller"),
    ),
}
"""Children of the elements of a URDF file. Other elements may have any children."""

_PLACED = ("pose", "frame")

SDF: dict[str, tuple[str, ...]] = {
    "sdf": ("world", "model", "light", "actor"),
    "world": (
        *("model", "include", "light", "actor", "frame", "joint", "road", "plugin", "gui"),
        *("physics", "scene", "audio", "wind", "gravity", "magnetic_field", "atmosphere"),
        *("spherical_coordinates", "state", "population"),
    ),
    "model": (
        *("link", "joint", "model", "include", "gripper", "plugin", "static", "self_collide"),
        *("allow_auto_disable", "enable_wind", *_PLACED),
    ),
    "link": (
        *("inertial", "visual", "collision", "sensor", "light", "projector", "battery", "plugin"),
        *("gravity", "enable_wind", "self_collide", "kinematic", "must_be_base_link"),
        *("velocity_decay", "audio_sink", "audio_source", "particle_emitter", *_PLACED),
    ),
    "inertial": (
        *("mass", "inertia", "density", "auto_inertia_params", "fluid_added_mass"),
        *_PLACED,
    ),
    "inertia": MOMENTS,
    "visual": (
        *("geometry", "material", "cast_shadows", "laser_retro", "transparency", "meta"),
        *("visibility_flags", "plugin", *_PLACED),
    ),
    "collision": (
        *("geometry", "surface", "laser_retro", "max_contacts", "density", "auto_inertia_params"),
        *_PLACED,
    ),
    "geometry": (*SHAPE_TRAITS, "empty", "cone", "heightmap", "image", "plane", "polyline"),
    **{kind: tuple(key for key, _ in row.sizes) for kind, row in SHAPE_TRAITS.items()},
    "mesh": ("uri", "scale", "submesh", "filename", "convex_decomposition"),
    "joint": (
        *("parent", "child", "axis", "axis2", "gearbox_ratio", "gearbox_reference_body"),
        *("thread_pitch", "screw_thread_pitch", "physics", "sensor", "plugin", *_PLACED),
    ),
    "axis": ("xyz", "limit", "dynamics", "mimic", "initial_position", "use_parent_model_frame"),
    "limit": ("lower", "upper", "effort", "velocity", "stiffness", "dissipation"),
    "dynamics": ("damping", "friction", "spring_reference", "spring_stiffness"),
    "mimic": ("multiplier", "offset", "reference"),
}
"""Children of the elements of an SDF file."""
SDF["axis2"] = SDF["axis"]
