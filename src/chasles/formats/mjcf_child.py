"""Compiles an MJCF file with MuJoCo; `walled_program.py` runs it. It imports nothing of chasles."""

import os
from typing import Any

import mujoco
import numpy as np

ARRAYS = (
    *("body_parentid", "body_jntadr", "body_jntnum", "body_mocapid", "body_pos", "body_quat"),
    *("body_mass", "body_ipos", "body_iquat", "body_inertia"),
    *("jnt_bodyid", "jnt_qposadr", "jnt_dofadr", "jnt_pos", "jnt_axis", "jnt_limited", "jnt_range"),
    *("jnt_actfrclimited", "jnt_actfrcrange"),
    *("qpos0", "dof_armature", "dof_damping", "dof_frictionloss"),
    *("site_bodyid", "site_pos", "site_quat"),
    *("eq_obj1id", "eq_obj2id", "eq_active0", "eq_data"),
    *("tendon_adr", "tendon_num", "wrap_objid", "wrap_prm"),
    *("geom_bodyid", "geom_group", "geom_dataid", "geom_size", "geom_pos", "geom_quat"),
    *("geom_contype", "geom_conaffinity", "geom_friction", "geom_condim"),
    *("mesh_pos", "mesh_quat", "mesh_scale"),
)
"""What is printed of mjModel under its own name; MuJoCo's documentation says what each is."""

KINDS = {
    "body_sameframe": mujoco.mjtSameFrame,
    "jnt_type": mujoco.mjtJoint,
    "eq_type": mujoco.mjtEq,
    "eq_objtype": mujoco.mjtObj,
    "wrap_type": mujoco.mjtWrap,
    "geom_type": mujoco.mjtGeom,
}
"""Arrays that are printed as words."""


def answer(file: str, parts: str) -> dict[str, Any]:
    """The numbers of a file's model; absent: files that are not there; stubs: shapes for such."""
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
    """Put spheres for meshes and plain colours for textures whose files are not there.

    Returns the names of those files, and the spheres. A mesh that gives a body its mass is needed.
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
                    f"Error opening file {mesh.file!r}, from which body {geom.parent.name!r} has "
                    "its mass: give the body an <inertial>, or the file"
                )
            geom.type, geom.size, geom.meshname = mujoco.mjtGeom.mjGEOM_SPHERE, [1e-3] * 3, ""
            stubs.append(geom)
        absent.append(mesh.file)
        spec.delete(mesh)
    return absent, stubs


def found(spec: Any, folder: str, file: str) -> bool:
    """Return True if the file of a mesh or texture is there."""
    return os.path.isfile(os.path.join(spec.modelfiledir, folder, file))


def numbers(model: Any, parts: int) -> dict[str, Any]:
    """Numbers of a compiled model, and the words for its kinds of joints and equalities."""
    size = model.nbody + model.njnt + model.nsite + model.neq + model.ngeom
    if size > parts:
        raise ValueError(f"the model has {size} bodies, joints, sites, equalities and shapes")
    disabled, bits = model.opt.disableflags, mujoco.mjtDisableBit
    weightless = disabled & bits.mjDSBL_GRAVITY
    return {
        **{name: entries(model, name) for name in ARRAYS},
        **{name: [word(kind(k)) for k in getattr(model, name)] for name, kind in KINDS.items()},
        "gravity": [0.0] * 3 if weightless else model.opt.gravity.tolist(),
        "equalities_disabled": bool(disabled & bits.mjDSBL_EQUALITY),
        "body": names(model, mujoco.mjtObj.mjOBJ_BODY, model.nbody),
        "joint": names(model, mujoco.mjtObj.mjOBJ_JOINT, model.njnt),
        "site": names(model, mujoco.mjtObj.mjOBJ_SITE, model.nsite),
        "equality": names(model, mujoco.mjtObj.mjOBJ_EQUALITY, model.neq),
        "geom_color": colors(model).tolist(),
        "excluded": [[int(k) >> 16, int(k) & 0xFFFF] for k in model.exclude_signature],
        "mesh_file": [path(model, int(start)) for start in model.mesh_pathadr],
        "tendon": names(model, mujoco.mjtObj.mjOBJ_TENDON, model.ntendon),
        "armature": reflected(model, "armature"),
        "damping": reflected(model, "damping"),
        "unused": unused(model),
    }


def reflected(model: Any, what: str) -> dict[str, list[float]]:
    """The armature or damping of each tendon, and what actuators add to each joint and tendon.

    It acts by the square of the first gear, in all degrees of freedom of a joint. Versions of
    MuJoCo before 3.5 have none of actuators.
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
    """An array of finite numbers; ranges may be infinite."""
    array = getattr(model, name)
    wrong = np.isnan(array) if name.endswith("range") else ~np.isfinite(array)
    if wrong.any():
        raise ValueError(f"{name}{np.argwhere(wrong)[0].tolist()} is not a finite number")
    return array.tolist()


def names(model: Any, kind: Any, count: int) -> list[str]:
    """Names of all parts of a kind; "" where the file has none."""
    return [mujoco.mj_id2name(model, kind, k) or "" for k in range(count)]


def colors(model: Any) -> Any:
    """Colours of shapes: that of the material, where they have one."""
    found = model.geom_rgba.copy()
    drawn = model.geom_matid >= 0
    found[drawn] = model.mat_rgba[model.geom_matid[drawn]]
    return np.clip(np.nan_to_num(found), 0.0, 1.0)


def path(model: Any, start: int) -> str:
    """The file that begins there in the model's list of files; "" if there is none."""
    return "" if start < 0 else model.paths[start:].partition(b"\0")[0].decode("utf-8", "replace")


def word(member: Any) -> str:
    """MuJoCo's word for a kind: mjJNT_HINGE is a hinge."""
    return str(member.name).partition("_")[2].lower()


def unused(model: Any) -> dict[str, int]:
    """Count the parts that move a mechanism in MuJoCo and that a robot here does not have."""
    ball = model.jnt_type == mujoco.mjtJoint.mjJNT_BALL
    touching = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    stiff = count(model, "jnt_stiffness"), count(model, "jnt_stiffnesspoly")
    return {
        "actuators": int(model.nu),
        "tendons": int(model.ntendon),
        "flexible parts": int(model.nflex),
        "springs of joints": max(stiff),
        "dampers that are not linear": count(model, "dof_dampingpoly")
        + count(model, "actuator_dampingpoly"),
        "limits of ball joints": int((ball & (model.jnt_limited != 0)).sum()),
        "bodies with gravity compensation": count(model, "body_gravcomp"),
        "bodies moved by the user (mocap), held where they start": int(model.nmocap),
        "shapes that touch others": int(touching.sum()),
        "surrounding fluid": int(model.opt.density != 0.0 or model.opt.viscosity != 0.0),
    }


def count(model: Any, name: str) -> int:
    """The rows of an array that are not zero; none where this version of MuJoCo lacks the array."""
    return sum(bool(row.any()) for row in getattr(model, name, ()))
