"""Every MJCF element and attribute affects the model, causes a warning, or is listed as unused.

The elements are those of MuJoCo's schema, and the test document has most of them. Each attribute is
changed in turn. Then the model or the warnings must change, unless `UNUSED` gives a reason.
"""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from lxml import etree

mujoco = pytest.importorskip("mujoco")
if int(mujoco.__version__.split(".")[0]) < 4:
    pytest.skip("the schema is that of MuJoCo 4", allow_module_level=True)

from mjcf_schema import DOCUMENT, changed, schema, value_of, written  # noqa: E402

from chasles.formats import mjcf, mjcf_child, mjcf_source  # noqa: E402

LOOKS = "how things look"
SOLVER = "numbers of MuJoCo's soft constraints and solver; constraints are exact here"
RESOLVED = "MuJoCo's compiler resolves it into numbers that are read"
USER = "numbers of the user, which mean nothing to MuJoCo"
WHOLE = "the whole element is a warning (`WARNED`)"
NAMES = "a name that other elements refer to, or that has no meaning here"
RANGED = "goes with a range, which is read"
KINDS = "read, or a warning, for each kind: tests/robot/test_sensors.py"
DRIVEN = "read for each transmission: tests/formats/test_mjcf_machine.py"

UNUSED: dict[str, str] = {
    r"(visual|statistic|asset/(texture|material|skin)|deformable/skin|custom|size)(/.*)?": LOOKS,
    r"(default|compiler|asset|extension|deformable)(/.*)?": RESOLVED,
    r"body/(light|camera)(/.*)?": LOOKS,
    r"body/(flexcomp|plugin|geom/plugin|attach|composite)(/.*)?": WHOLE,
    r".*/(rgba|material|group|castshadow|width|fitscale)": LOOKS,
    r".*/(class|childclass)": RESOLVED,
    r".*/user": USER,
    r".*/(solref|solimp)\w*": SOLVER,
    r".*/(margin|gap|solmix|torquescale)": SOLVER,
    r"option/(o_\w+|cone|impratio|jacobian|solver|\w*iterations|\w*tolerance|sdf_\w+)": SOLVER,
    r"option/(timestep|integrator)": "arguments of simulate",
    r"option/flag/(autoreset|diagexact|energy|eulerdamp|fwdinv|invdiscrete)": SOLVER,
    r"option/flag/(ipc|island|midphase)": SOLVER,
    r"option/flag/(multiccd|nativeccd|refsafe|sleep|speculative|warmstart)": SOLVER,
    r"option/flag/sensor": "values of sensors are computed when they are asked for",
    r"option/flag/filterparent": "a link never touches its parent here",
    r"option/magnetic": "of magnetometers, of which the document has none",
    r"body/(fuse|sleep|simple)": SOLVER,
    r"body/(freejoint/align|inertial/fullinertia)": RESOLVED,
    r"body/mocap": "a note: such bodies are held where they start",
    r"(body|body/joint|body/site|actuator/motor|tendon/spatial)/name": NAMES,
    r".*/(ctrl|force|act|actuatorfrc)limited": RANGED,
    r"tendon/\w+/limited": RANGED,
    r"body/geom/(name|mass|density|shellinertia|fluidcoef|hfield|mesh|fromto)": RESOLVED,
    r"body/site/(fromto|mesh|material|type|size)": LOOKS,
    r"contact/(pair|exclude)/name": NAMES,
    r"equality/\w+/name": NAMES,
    r"equality/(weld|tendon|flex|flexstrain|connect)/.*": "read: tests/formats/test_mjcf.py",
    r"tendon/spatial/geom/.*": WHOLE,
    r"actuator/(adhesion|dcmotor|muscle|orientation|pid|plugin)(/.*)?": WHOLE,
    r"actuator/\w+/(interp|nsample|lengthrange)": "of delays and muscles, which are warnings",
    r"actuator/\w+/(crank\w+|slidersite|site|refsite|tendon|body|joint|jointinparent)": DRIVEN,
    r"actuator/general/(actdim|ffrange|velrange|input)": "of kinds that are warnings",
    r"actuator/general/inheritrange": RESOLVED,
    r"sensor/\w+/(interp|nsample)": "of delays, which are warnings",
    r"sensor/(?!accelerometer|jointpos|framepos|actuatorfrc|tendonpos)\w+/.*": KINDS,
    r"sensor/framepos/(objtype|ref\w+)": KINDS,
    r"sensor/(plugin|user|tactile|contact|geomdist|geomnormal|geomfromto)(/.*)?": WHOLE,
    r"keyframe/key/(time|mpos|mquat|plastic)": "a keyframe is a state here",
}
"""Attributes without effect, by patterns of their paths, with reasons."""

WARNED = {
    "flex": ("worldbody", '<flexcomp name="f" type="grid" count="3 3 1" radius=".01" dim="2"/>'),
    "muscle": ("actuator", '<muscle name="x" joint="yaw" lengthrange="0 1"/>'),
    "adhesion": ("actuator", '<adhesion name="x" body="hand" ctrlrange="0 1"/>'),
    "sensor": ("sensor", '<user name="x" dim="1"/>'),
    "wrapping": (
        "tendon",
        '<spatial name="x" stiffness="1"><site site="post"/><geom geom="ball"/><site site="tip"/>'
        "</spatial>",
    ),
    "servo": ("actuator", '<position name="x" site="tip" refsite="palm" gear="0 0 0 1 0 0"/>'),
}
"""Parts that are omitted with a warning, as parent element and XML text."""


def reason(path: str) -> str:
    """Return the reason why an attribute may have no effect, or "" if it must have one."""
    return next((why for pattern, why in UNUSED.items() if re.fullmatch(pattern, path)), "")


def test_every_reason_is_one_of_the_schema() -> None:
    every = {"/".join((*path, name)) for path, names in schema().items() for name in names}
    every |= {"/".join(path) for path in schema()}
    idle = [p for p in UNUSED if not any(re.fullmatch(p, path) for path in every)]
    assert not idle


def read(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, tuple[str, ...]]:
    """Return everything that is read from a document, and the warnings."""
    parts = str(mjcf_source.MAX_PARTS)
    monkeypatch.setattr(mjcf_source, "compiled", lambda file: mjcf_child.answer(file, parts))
    found = mjcf.read(written(folder, text))
    kept = [f.name for f in fields(found) if f.name not in ("notes", "unsupported")]
    return repr([(name, getattr(found, name)) for name in kept]), found.unsupported


def attributes() -> Iterator[tuple[tuple[str, ...], str]]:
    for path, names in sorted(schema().items()):
        for name in sorted(names):
            if path and not reason("/".join((*path, name))):
                yield path, name


BASE = etree.tostring(etree.fromstring(DOCUMENT), encoding="unicode")


def test_every_other_attribute_is_in_the_model_or_in_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = read(tmp_path, BASE, monkeypatch)
    unfelt, unknown = [], []
    for path, name in attributes():
        if (value := value_of(path, name)) is None:
            unknown.append("/".join((*path, name)))
        elif read(tmp_path, changed(path, None, name, value), monkeypatch) == base:
            unfelt.append("/".join((*path, name)))
    assert not unfelt
    assert not unknown


@pytest.mark.parametrize("what", WARNED)
def test_parts_that_are_left_out_are_warnings(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section, text = WARNED[what]
    root = etree.fromstring(DOCUMENT)
    before = read(tmp_path, BASE, monkeypatch)[1]
    root.find(section).append(etree.fromstring(text))
    after = read(tmp_path, etree.tostring(root, encoding="unicode"), monkeypatch)[1]
    assert len({*after} - {*before}) == 1
