"""Compile an MJCF file with MuJoCo in a separate process (`walled_program.py`).

This module does not import chasles.
"""

import os
from typing import Any

import mujoco
import numpy as np

ARRAYS = (
    *("body_parentid", "body_jntadr", "body_jntnum", "body_mocapid", "body_pos", "body_quat"),
    *("body_mass", "body_ipos", "body_iquat", "body_inertia"),
    *("jnt_bodyid", "jnt_qposadr", "jnt_dofadr", "jnt_pos", "jnt_axis", "jnt_range"),
    *("jnt_actfrclimited", "jnt_actfrcrange"),
    *("site_bodyid", "site_pos", "site_quat", "site_size"),
    *("cam_bodyid", "cam_pos", "cam_quat", "cam_fovy", "cam_resolution", "cam_intrinsic"),
    *("cam_sensorsize", "jnt_margin"),
    *("sensor_objid", "sensor_refid", "sensor_cutoff", "sensor_noise", "sensor_dim"),
    *("qpos0", "qpos_spring", "jnt_actgravcomp", "body_gravcomp"),
    *("dof_armature", "tendon_lengthspring", "geom_priority"),
    *("tendon_actfrclimited", "tendon_actfrcrange", "tendon_range"),
    *("key_qpos", "key_qvel", "key_act", "key_ctrl"),
    *("eq_obj1id", "eq_obj2id", "eq_active0", "eq_data"),
    *("tendon_adr", "tendon_num", "wrap_objid", "wrap_prm"),
    *("geom_bodyid", "geom_group", "geom_dataid", "geom_size", "geom_pos", "geom_quat"),
    *("geom_friction", "geom_condim"),
    *("mesh_pos", "mesh_quat", "mesh_scale", "hfield_size"),
)
"""Fields of MuJoCo's mjModel that this child process sends unchanged."""

KINDS = {
    "body_sameframe": mujoco.mjtSameFrame,
    "jnt_type": mujoco.mjtJoint,
    "eq_type": mujoco.mjtEq,
    "eq_objtype": mujoco.mjtObj,
    "wrap_type": mujoco.mjtWrap,
    "geom_type": mujoco.mjtGeom,
    "site_type": mujoco.mjtGeom,
    "cam_mode": mujoco.mjtCamLight,
    "sensor_type": mujoco.mjtSensor,
    "sensor_objtype": mujoco.mjtObj,
    "sensor_reftype": mujoco.mjtObj,
}
"""Fields of mjModel with enumeration values, which are returned as strings such as "hinge"."""

MOST_HEIGHTS = 200_000
"""Maximum number of samples in a height field; larger fields are ignored."""


def answer(file: str, parts: str) -> dict[str, Any]:
    """Compile an MJCF file; return arrays by name.

    The entry "absent" lists missing files. The entry "stubs" lists the indices of the shapes that
    replace missing meshes.
    """
    absent: list[str] = []
    stubs: list[Any] = []
    try:
        model = mujoco.MjModel.from_xml_path(file)
    except ValueError as error:
        if "opening file" not in str(error) or not hasattr(mujoco, "MjSpec"):
            raise
        spec = mujoco.MjSpec.from_file(file)
        absent, stubs = stubbed(spec)
        if not absent:
            raise
        model = spec.compile()
    return numbers(model, int(parts)) | {"absent": absent, "stubs": [geom.id for geom in stubs]}


def stubbed(spec: Any) -> tuple[list[str], list[Any]]:
    """Replace missing meshes by small spheres, and missing textures by plain colors.

    Return the names of the missing files, and the shapes that became spheres. Raise an error if the
    mass of a body depends on a missing mesh.
    """
    absent, stubs = [], []
    for texture in spec.textures:
        if texture.file and not found(spec, spec.compiler.texturedir, texture.file):
            absent.append(texture.file)
            texture.file, texture.builtin = "", mujoco.mjtBuiltin.mjBUILTIN_FLAT
            texture.width = texture.height = 1
    always = spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    for mesh in list(spec.meshes):
        if not mesh.file or found(spec, spec.compiler.meshdir, mesh.file):
            continue
        name = mesh.name or os.path.splitext(os.path.basename(mesh.file))[0]
        for geom in [geom for geom in spec.geoms if geom.meshname == name]:
            if always or not (geom.parent.explicitinertial or geom.parent.name == "world"):
                raise ValueError(
                    f"Error opening file {mesh.file!r}, which determines the mass of body "
                    f"{geom.parent.name!r}: give the body an <inertial>, or provide the file"
                )
            geom.type, geom.size, geom.meshname = mujoco.mjtGeom.mjGEOM_SPHERE, [1e-3] * 3, ""
            stubs.append(geom)
        absent.append(mesh.file)
        spec.delete(mesh)
    return absent, stubs


def found(spec: Any, folder: str, file: str) -> bool:
    """Return True if a mesh or texture file exists."""
    return os.path.isfile(os.path.join(spec.modelfiledir, folder, file))


def numbers(model: Any, parts: int) -> dict[str, Any]:
    """Convert a compiled model to lists; enumeration values become strings."""
    size = model.nbody + model.njnt + model.nsite + model.neq + model.ngeom
    if size > parts:
        raise ValueError(f"too many parts: {size} bodies, joints, sites, equalities and shapes")
    disabled, bits = model.opt.disableflags, mujoco.mjtDisableBit
    weightless = disabled & bits.mjDSBL_GRAVITY
    return {
        **{name: entries(model, name) for name in ARRAYS},
        **{name: [word(kind(k)) for k in getattr(model, name)] for name, kind in KINDS.items()},
        "gravity": [0.0] * 3 if weightless else model.opt.gravity.tolist(),
        "equalities_disabled": constrained(model, "EQUALITY"),
        **{name: acting(model, name, "LIMIT") for name in ("jnt_limited", "tendon_limited")},
        **{
            name: acting(model, name, "FRICTIONLOSS")
            for name in ("dof_frictionloss", "tendon_frictionloss")
        },
        **{name: acting(model, name, "CONTACT") for name in ("geom_contype", "geom_conaffinity")},
        "body": names(model, mujoco.mjtObj.mjOBJ_BODY, model.nbody),
        "joint": names(model, mujoco.mjtObj.mjOBJ_JOINT, model.njnt),
        "site": names(model, mujoco.mjtObj.mjOBJ_SITE, model.nsite),
        "equality": names(model, mujoco.mjtObj.mjOBJ_EQUALITY, model.neq),
        "geom_color": colors(model).tolist(),
        "paired": [] if constrained(model, "CONTACT") else paired(model),
        "excluded": [[int(k) >> 16, int(k) & 0xFFFF] for k in model.exclude_signature],
        "mesh_file": [path(model, int(start)) for start in model.mesh_pathadr],
        "hfield": heights(model),
        "tendon": names(model, mujoco.mjtObj.mjOBJ_TENDON, model.ntendon),
        "armature": reflected(model, "armature"),
        "sensor": names(model, mujoco.mjtObj.mjOBJ_SENSOR, model.nsensor),
        "magnetic": model.opt.magnetic.tolist(),
        "triangles": triangles(model),
        "damping": damped(model, reflected(model, "damping")),
        "dof_damping": damped(model, model.dof_damping.tolist()),
        "jnt_stiffness": sprung(model, model.jnt_stiffness),
        "tendon_stiffness": sprung(model, model.tendon_stiffness),
        "key": names(model, mujoco.mjtObj.mjOBJ_KEY, model.nkey),
        "actuators": [actuator(model, k) for k in range(len(model.actuator_trntype))],
        "fluid": fluid(model),
        "mocap": int(model.nmocap),
        "touching": touching(model),
        "unsupported": unsupported(model),
    }


def heights(model: Any) -> list[list[list[float]]]:
    """Return each height field as rows of heights (m), or [] if it exceeds `MOST_HEIGHTS`."""
    found: list[list[list[float]]] = []
    for k in range(model.nhfield):
        rows, columns, start = model.hfield_nrow[k], model.hfield_ncol[k], model.hfield_adr[k]
        if rows * columns > MOST_HEIGHTS:
            found.append([])
            continue
        data = model.hfield_data[start : start + rows * columns].reshape(rows, columns)
        found.append((data.astype(float) * model.hfield_size[k][2]).tolist())
    return found


def triangles(model: Any) -> dict[str, list[list[float]]]:
    """Return the triangle vertices of each mesh, or {} if the model has no rangefinder.

    The vertices are expressed in the frame of the mesh.
    """
    if not (model.sensor_type == mujoco.mjtSensor.mjSENS_RANGEFINDER).any():
        return {}
    found = {}
    for k in range(model.nmesh):
        first, face = model.mesh_vertadr[k], model.mesh_faceadr[k]
        places = model.mesh_face[face : face + model.mesh_facenum[k]] + first
        found[str(k)] = model.mesh_vert[places].reshape(-1, 9).astype(float).tolist()
    return found


def reflected(model: Any, what: str) -> dict[str, list[float]]:
    """Return the armature or damping that actuators add to joints and tendons.

    Tendon values include the tendon's own armature or damping. An actuator's value is multiplied by
    the square of its first gear ratio and applies to all degrees of freedom of a joint. Actuators
    have neither armature nor damping in MuJoCo before version 3.5.
    """
    ends = {"joint": "joint", "jointinparent": "joint", "tendon": "tendon"}
    found = {"joint": [0.0] * model.njnt, "tendon": [0.0] * model.ntendon}
    if hasattr(model, f"tendon_{what}"):
        found["tendon"] = getattr(model, f"tendon_{what}").ravel().tolist()
    for k, own in enumerate(getattr(model, f"actuator_{what}", ())):
        end = ends.get(word(mujoco.mjtTrn(model.actuator_trntype[k])))
        if end and np.isfinite(own):
            first = model.actuator_outadr[k] if hasattr(model, "actuator_outadr") else k
            gear = float(model.actuator_gear[first][0])
            found[end][model.actuator_trnid[k][0]] += float(own) * gear * gear
    return found


def entries(model: Any, name: str) -> list[Any]:
    """Return a field of mjModel as a list.

    Raise an error for NaN. Infinity is allowed only in ranges, such as `jnt_range`.
    """
    array = getattr(model, name)
    wrong = np.isnan(array) if name.endswith("range") else ~np.isfinite(array)
    if wrong.any():
        raise ValueError(f"{name}{np.argwhere(wrong)[0].tolist()} is not a finite number")
    return array.tolist()


def names(model: Any, kind: Any, count: int) -> list[str]:
    """Return the names of all MuJoCo objects of one type ("" if an object has no name)."""
    return [mujoco.mj_id2name(model, kind, k) or "" for k in range(count)]


def colors(model: Any) -> Any:
    """Return the RGBA colors of all shapes; a material takes precedence over the shape's color."""
    found = model.geom_rgba.copy()
    drawn = model.geom_matid >= 0
    found[drawn] = model.mat_rgba[model.geom_matid[drawn]]
    return np.clip(np.nan_to_num(found), 0.0, 1.0)


def path(model: Any, start: int) -> str:
    """Return the file path that begins at an offset in `model.paths`; "" for a negative offset."""
    return "" if start < 0 else model.paths[start:].partition(b"\0")[0].decode("utf-8", "replace")


def word(member: Any) -> str:
    """Return the name of an enumeration value, for example "hinge" for mjJNT_HINGE."""
    return str(member.name).partition("_")[2].lower()


def touching(model: Any) -> int:
    """Count the shapes that can touch other shapes."""
    return int(((model.geom_contype != 0) | (model.geom_conaffinity != 0)).sum())


def unsupported(model: Any) -> dict[str, int]:
    """Count the features of a model that chasles does not support."""
    loss = "dof_dampingpoly", "actuator_dampingpoly", "tendon_dampingpoly"
    return {
        "flexible bodies (flex)": int(model.nflex),
        "plugins": int(model.nplugin),
        "nonlinear springs": count(model, "jnt_stiffnesspoly")
        + count(model, "tendon_stiffnesspoly"),
        "yielding springs": count(model, "jnt_springyield") + count(model, "tendon_springyield"),
        "large height fields": int((model.hfield_nrow * model.hfield_ncol > MOST_HEIGHTS).sum()),
        "adhesive shapes": count(model, "geom_adhesion") + count(model, "pair_adhesion"),
        "shapes with a moving surface": count(model, "geom_surfacevel"),
        "global contact overrides": int(
            bool(model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_OVERRIDE)
        ),
        "sensor delays": count(model, "sensor_delay") + count(model, "sensor_interval"),
        "nonlinear dampers": sum(count(model, name) for name in loss),
        "shapes with the ellipsoid fluid model": int((model.geom_fluid[:, 0] > 0).sum())
        if fluid(model)
        else 0,
    }


def disabled(model: Any, *words: str) -> bool:
    """Return True if the model disables all given effects, such as "CONTACT"."""
    bits = (getattr(mujoco.mjtDisableBit, f"mjDSBL_{word}", 0) for word in words)
    return all(model.opt.disableflags & bit for bit in bits)


def paired(model: Any) -> list[list[Any]]:
    """Return explicit contact pairs: two shapes, condim, and five friction coefficients."""
    rows = zip(model.pair_geom1, model.pair_geom2, model.pair_dim, strict=True)
    return [
        [int(a), int(b), int(many), friction.tolist()]
        for (a, b, many), friction in zip(rows, model.pair_friction, strict=True)
    ]


def constrained(model: Any, word: str) -> bool:
    """Return True if the model disables a type of constraint, or all constraints."""
    return disabled(model, word) or disabled(model, "CONSTRAINT")


def acting(model: Any, name: str, word: str) -> list[Any]:
    """Return a field of mjModel, or zeros if the model disables the constraint type `word`."""
    found = entries(model, name)
    return [0] * len(found) if constrained(model, word) else found


def passive(model: Any, word: str) -> bool:
    """Return True if the model disables springs (`word` is "SPRING") or dampers ("DAMPER")."""
    single = hasattr(mujoco.mjtDisableBit, f"mjDSBL_{word}")  # MuJoCo 3.4 or later
    return disabled(model, word if single else "PASSIVE")


def sprung(model: Any, stiffness: Any) -> list[float]:
    """Return stiffness coefficients, or zeros if the model disables springs."""
    return [0.0] * len(stiffness) if passive(model, "SPRING") else stiffness.ravel().tolist()


def damped(model: Any, found: Any) -> Any:
    """Return damping coefficients, or zeros if the model disables dampers."""
    if not passive(model, "DAMPER"):
        return found
    if isinstance(found, dict):
        return {key: [0.0] * len(entries) for key, entries in found.items()}
    return [0.0] * len(found)


def fluid(model: Any) -> dict[str, Any]:
    """Return fluid properties and the edge lengths of each body's equivalent inertia box.

    The dictionary is empty if the model has no fluid.
    """
    idle = passive(model, "SPRING") and passive(model, "DAMPER")
    if idle or not (model.opt.density or model.opt.viscosity):
        return {}
    boxes: list[Any] = []
    for body, (mass, moments) in enumerate(zip(model.body_mass, model.body_inertia, strict=True)):
        first = model.body_geomadr[body]
        shapes = model.geom_fluid[first : first + model.body_geomnum[body]]
        if body == 0 or mass < mujoco.mjMINVAL or (shapes[:, 0] > 0).any():
            boxes.append(None)
            continue
        edges = np.maximum(mujoco.mjMINVAL, moments.sum() - 2.0 * moments) / mass * 6.0
        boxes.append(np.sqrt(edges).tolist())
    opt = model.opt
    return {
        "density": float(opt.density),
        "viscosity": float(opt.viscosity),
        "wind": opt.wind.tolist(),
        "boxes": boxes,
    }


# Actuators --------------------------------------------------------------------------------------


def actuator(model: Any, k: int) -> dict[str, Any]:
    """Return an actuator's data. The entry "unsupported" names an unsupported feature, or is ""."""
    out = int(model.actuator_outadr[k]) if hasattr(model, "actuator_outadr") else k
    ctrl = int(model.actuator_ctrladr[k]) if hasattr(model, "actuator_ctrladr") else k
    words = {
        what: word(kind(getattr(model, f"actuator_{what}type")[k]))
        for what, kind in (
            ("trn", mujoco.mjtTrn),
            ("gain", mujoco.mjtGain),
            ("bias", mujoco.mjtBias),
            ("dyn", mujoco.mjtDyn),
        )
    }
    found = {
        "name": mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_ACTUATOR, k) or "",
        **words,
        "ends": model.actuator_trnid[k].tolist(),
        "gear": model.actuator_gear[out].tolist(),
        "gainprm": model.actuator_gainprm[k][:3].tolist(),
        "biasprm": model.actuator_biasprm[k][:3].tolist(),
        "constant": float(model.actuator_dynprm[k][0]),
        "rod": float(model.actuator_cranklength[out]),
        "unsupported": lacking(model, k, words),
        "disabled": disabled(model, "ACTUATION") or group_disabled(model, k),
    }
    clamped = not disabled(model, "CLAMPCTRL")
    for what, row in (("ctrl", ctrl), ("force", k), ("act", k)):
        limited = getattr(model, f"actuator_{what}limited")[row] and (what != "ctrl" or clamped)
        found[what] = getattr(model, f"actuator_{what}range")[row].tolist() if limited else None
    return found


def group_disabled(model: Any, k: int) -> bool:
    """Return True if the model disables an actuator's group."""
    group = int(model.actuator_group[k])
    return 0 <= group < 31 and bool(model.opt.disableactuator & (1 << group))


def lacking(model: Any, k: int, words: dict[str, str]) -> str:
    """Return the first unsupported feature of an actuator, or ""."""
    known = {
        "trn": ("joint", "jointinparent", "tendon", "site", "slidercrank"),
        "gain": ("fixed", "affine"),
        "bias": ("none", "affine"),
        "dyn": ("none", "integrator", "filter", "filterexact"),
    }
    for what, allowed in known.items():
        if words[what] not in allowed:
            return f"{what}type {words[what]!r}"
    if model.actuator_plugin[k] >= 0:
        return "a plugin"
    if model.actuator_actearly[k]:
        return "actearly"
    if hasattr(model, "actuator_delay") and model.actuator_delay[k]:
        return "a delay"
    return "a position servo for a rotation" if turns(model, k, words) else ""


def turns(model: Any, k: int, words: dict[str, str]) -> bool:
    """Return True if MuJoCo (3.5+) replaces a servo's target with the nearest equivalent angle."""
    servo = words["gain"] == "fixed" and words["bias"] == "affine"
    servo = servo and model.actuator_gainprm[k][0] == -model.actuator_biasprm[k][1] != 0.0
    servo = servo and words["dyn"] in ("none", "integrator")
    if not servo or not hasattr(model, "actuator_outadr"):
        return False
    gear, ends = model.actuator_gear[model.actuator_outadr[k]], model.actuator_trnid[k]
    ball = words["trn"].startswith("joint")
    ball = ball and model.jnt_type[ends[0]] == mujoco.mjtJoint.mjJNT_BALL
    return bool(ball or (words["trn"] == "site" and ends[1] >= 0 and not gear[:3].any()))


def count(model: Any, name: str) -> int:
    """Return the number of nonzero rows of an mjModel field, or 0 if MuJoCo lacks the field."""
    return sum(bool(np.any(row)) for row in getattr(model, name, ()))
