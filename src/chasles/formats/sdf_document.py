"""Parse SDF files with all included files, build the tree of frames, and read gearboxes."""

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lxml import etree

from chasles.errors import ModelError
from chasles.formats.files import load, short
from chasles.formats.registry import VARIABLES, candidates, package_of
from chasles.formats.sdf_frames import WORLD, Node, direction, end, is_set, placed, relative, truth
from chasles.formats.spelling import SDF
from chasles.formats.xml_file import Part, Source, note_misspelled, parse
from chasles.model import CouplingData, JointData, gear

OLDEST, NEWEST = 4, 12
"""Oldest and newest minor versions of SDF that are read without a note to the user.

Older files are converted as in sdformat; newer files are read as version `NEWEST`.
"""

_KEPT = {"name", "type", "version"}
_INLINE = {"origin", "parent", "child", "gravity", "ambient", "diffuse", "specular", "emissive"}
"""Changes between SDF 1.0 and later versions.

Attributes in `_KEPT` are still attributes. Attributes of elements in `_INLINE` became the text of
the element. All other attributes became child elements.
"""

MAX_NESTING = 40
"""Maximum nesting depth of models, including models in included files."""

MAX_PARTS = 20_000
"""Maximum total number of models, links, joints and frames, including included files."""

GEARBOX = "gearbox"
"""SDF joint type that couples the angles of two other joints."""

REFERENCE = "gearbox_reference_body"

_PARALLEL = 1e-9

Turning = dict[frozenset[str], list[tuple[Node, JointData]]]
"""Revolute joints, keyed by the pair of links that they connect."""

MANIFEST = "model.config"
"""File in a model folder that lists the model's SDF files by version."""


@dataclass
class Document:
    """An SDF file that is being read.

    `world` is the `<world>` element, or `<sdf>` if the file has no world. `ties` contains the names
    of all joints.
    """

    file: str
    world: Part
    top: Node
    snap: bool
    notes: list[str]
    nodes: list[Node] = field(default_factory=list)
    ties: set[str] = field(default_factory=set)

    def of(self, kind: str) -> Iterator[Node]:
        """Yield the frames of all elements of a kind, such as "link", in file order."""
        return (node for node in self.nodes if node.kind == kind)

    def add(self, scope: Node, part: Part, name: str, **facts: Any) -> Node:
        """Add the frame of an XML element to a model or world, and return the frame."""
        given, base = placed(part)
        kind: str = facts.pop("kind", part.tag)
        node = Node(part, kind, scope.prefix + name, scope, given, **facts)
        node.base = base or node.base
        if len(self.nodes) >= MAX_PARTS:
            problem = f"the file has more than {MAX_PARTS} links, joints and frames"
            raise ModelError("E-SDF-012", problem, "simplify the file", file=self.file)
        self.nodes.append(scope.add(node, name))
        if node.kind == "joint":
            self.ties.add(node.name)
        return node


@dataclass(frozen=True)
class _Way:
    """Context of the element that is being read.

    `above` contains the names of the enclosing files and models. `static` is True if the element
    never moves. `bare` is True if names are not prefixed with the name of the model.
    """

    above: tuple[str, ...]
    static: bool = False
    bare: bool = False

    def into(self, name: str, *, static: bool) -> "_Way":
        return _Way((*self.above, name), static)


def opened(file: str, *, snap: bool) -> Document:
    """Read a file and all included files, without computing the poses of frames."""
    notes: list[str] = []
    root, version = _root(file, snap, notes)
    worlds = list(root.all(WORLD))
    if len(worlds) > 1:
        raise worlds[1].error("E-SDF-013", "this is the second <world> of the file", "keep one")
    world = worlds[0] if worlds else root
    top = Node(world, WORLD, "", version=version)
    top.nodes[WORLD] = top
    document = Document(file, world, top, snap, notes)
    single = len(list(world.all("model", "include"))) == 1 and not world.find("joint", "frame")
    _parts(document, top, world, _Way((file,), bare=single))
    return document


def _root(file: str, snap: bool, notes: list[str]) -> tuple[Part, int]:
    """Return the root element of a file and the minor number of its SDF version."""
    element = parse(file, load(file), notes)
    part = Part(Source(file, "", snap, notes), element, "file")
    if element.tag not in ("sdf", "gazebo"):
        raise part.error(
            "E-SDF-014",
            f"the root element is <{element.tag}>, not <sdf>",
            "use <sdf> as the root element",
        )
    version = part.text("version")
    minor = _minor(version)
    if minor is None or not version.startswith("1."):
        raise part.error("E-SDF-015", f"version is {short(version)}", "give a version such as 1.9")
    if minor < OLDEST:
        part.note(f"version {version} is older than 1.{OLDEST}; converted as sdformat does")
    _convert(element, minor)
    if minor > NEWEST:
        part.note(f"version {version} is newer than 1.{NEWEST}; it is read as 1.{NEWEST}")
    note_misspelled(part, SDF)
    return part, minor


def _convert(root: etree._Element, minor: int) -> None:
    """Convert elements of older versions as sdformat does in `1_0.convert` through `1_5.convert`.

    Version 1.0 stores values as attributes, and poses as `<origin pose="...">`. Before version 1.6,
    gravity is in `<physics>`. Before version 1.5, joint axes are expressed in the model frame;
    `sdf_frames.direction` converts them.
    """
    for element in list(root.iter()) if minor < 2 else ():
        for key in [key for key in element.attrib if key not in _KEPT]:
            inline, text = element.tag in _INLINE, str(element.attrib.pop(key))
            (element if inline else etree.SubElement(element, key)).text = text
        element.tag = "pose" if element.tag == "origin" else element.tag
    for mesh in root.iter("mesh") if minor < OLDEST else ():
        for name in mesh.findall("filename"):
            name.tag = "uri"
    for world in root.iter(WORLD) if minor < 6 else ():
        given = world.find("physics/gravity")
        if given is not None and world.find("gravity") is None:
            world.append(given)


def _minor(version: str) -> int | None:
    """Return the minor number of a version such as "1.9", or None if it is invalid."""
    minor = version.partition(".")[2]
    return int(minor) if minor.isascii() and minor.isdigit() and len(minor) < 4 else None


def _parts(document: Document, scope: Node, owner: Part, way: _Way) -> None:
    """Read the links, joints, frames and models in a model or world."""
    for child in owner.all("link", "joint", "frame", "model", "include"):
        if child.tag == "include":
            _include(document, scope, child, way)
            continue
        part = child.named()
        name = part.text("name")
        if name == WORLD or (name.startswith("__") and name.endswith("__")):
            raise part.error("E-SDF-017", "SDF reserves this name", "rename it")
        if child.tag == "model":
            _model(document, scope, part, way)
            continue
        on = part.content("child") if child.tag == "joint" else part.element.get("attached_to", "")
        on = "" if child.tag == "link" else on
        document.add(scope, part, name, base=on, on=on, static=way.static)


def _model(document: Document, scope: Node, part: Part, way: _Way, version: int = 0) -> None:
    """Add a model and its contents; `version` is the minor SDF version of its file."""
    if len(way.above) > MAX_NESTING:
        raise part.error(
            "E-SDF-018",
            f"models are nested more than {MAX_NESTING} levels deep",
            "reduce the nesting",
        )
    name = part.text("name")
    facts = _model_facts(part, version or scope.version)
    node = document.add(scope, part, name, **facts)
    if way.bare:
        node.name = ""
    still = way.static or truth(part, "static", False)
    _parts(document, node, part, way.into(name, static=still))


def _model_facts(part: Part, version: int) -> dict[str, Any]:
    """Return the version, the canonical link (key "on") and the placement frame of a model."""
    on, placement = (part.element.get(key, "") for key in ("canonical_link", "placement_frame"))
    return {"version": version, "on": on, "placement": placement}


# Included files --------------------------------------------------------------------------------


def _include(document: Document, scope: Node, part: Part, way: _Way) -> None:
    """Add a model from another file; the `<include>` may override its name, pose and options."""
    uri, file = part.content("uri"), _included(part)
    if file in way.above:
        raise part.error("E-SDF-019", f"{short(uri)} includes itself", "remove one <include>")
    try:
        root, version = _root(file, document.snap, document.notes)
    except ModelError as error:
        problem = f"cannot include {short(uri)}: {error.fault}"
        raise part.error("E-SDF-020", problem, error.remedy) from None
    if root.find("model") is None and root.find("light", "actor") is not None:
        part.note(f"{short(uri)} is not a model and is ignored")
        return
    model = _overridden(root.need("model"), part)
    within = replace(way, above=(*way.above, file))
    if not is_set(part, "merge"):
        _model(document, scope, model, within, version)
        return
    if scope.kind == WORLD and model.find("link") is not None:
        problem = f"{short(uri)} has links, which cannot be merged into a world"
        raise part.error("E-SDF-021", problem, "omit `merge`")
    _merge(document, scope, model, within, version)


def _overridden(model: Part, include: Part) -> Part:
    """Apply the name, pose and options of an `<include>` to a model."""
    if include.find("placement_frame") is not None and include.find("pose") is None:
        raise include.error(
            "E-SDF-022", "placement_frame is given without a <pose>", "add a <pose>"
        )
    for key in ("name", "placement_frame"):
        if text := include.content(key):
            model.element.set(key, text)
    for key in ("pose", "static"):
        own, given = model.find(key), include.find(key)
        if given is not None:
            if own is not None:
                model.element.remove(own.element)
            model.element.insert(0, given.element)
    return model.named()


def _merge(document: Document, scope: Node, part: Part, way: _Way, version: int) -> None:
    """Add the parts of an included model to a scope, and a frame for the model.

    The frame has the same name as in libsdformat.
    """
    if truth(part, "static", False) and not way.static:
        part.note("static is ignored for a merged model, as SDF specifies")
    name = f"_merged__{part.text('name')}__model__"
    facts = _model_facts(part, version)
    origin = document.add(scope, part, name, kind="frame", into=scope, **facts)
    _parts(document, origin, part, way.into(name, static=way.static))


def _included(part: Part) -> str:
    """Find the file of an `<include>`; its URI is a path, a model folder or the name of a model.

    A name that is not a path from the file's own folder is searched like `model://NAME`.
    """
    part.need("uri")
    uri = part.content("uri")
    if uri.startswith(("http://", "https://")):
        problem = f"{short(uri)} is not a local file"
        raise part.error("E-SDF-030", problem, "download the model and give its path")
    local = Path(part.source.file).parent / uri.removeprefix("file://")
    path: Path | None = local
    if package_of(uri) or not os.path.exists(local):
        name = uri if "://" in uri else f"model://{uri}"
        found = next((x for x in candidates(name, part.source.file) if os.path.exists(x)), None)
        path = found if found or package_of(uri) else local
    if path is None:
        problem = (
            f"{short(uri)} is neither in a parent folder of the file nor in the folders listed in "
            f"{', '.join(VARIABLES)}"
        )
        raise part.error("E-SDF-031", problem, "put the model in one of these folders")
    return os.fspath(_main(part, path) if os.path.isdir(path) else path)


def _main(part: Part, folder: Path) -> Path:
    """Return the newest supported SDF file in a model folder, by default `model.sdf`."""
    if not os.path.isfile(folder / MANIFEST):
        return folder / "model.sdf"
    manifest = os.fspath(folder / MANIFEST)
    try:
        told = parse(manifest, load(manifest)).findall("sdf")
    except ModelError as error:
        raise part.error("E-SDF-032", error.fault, error.remedy) from None

    def version(element: etree._Element) -> int:
        return _minor(element.get("version", "")) or 0

    known = sorted((x for x in told if version(x) <= NEWEST), key=version)
    names = [(element.text or "").strip() for element in known]
    return folder / next(filter(None, reversed(names)), "model.sdf")


# Gearboxes -------------------------------------------------------------------------------------


def gears(document: Document, joints: Iterable[JointData]) -> Iterator[CouplingData]:
    """Yield a coupling theta2 = -gearbox_ratio theta1 for each gearbox (sdformat.org/spec).

    theta1 is the angle of the gearbox's parent link about `<axis>`, and theta2 is the angle of its
    child link about `<axis2>`. Both angles are relative to `gearbox_reference_body`. Up to sign,
    the angles are the coordinates of the joints that connect these links to the reference body.
    """
    nodes = {node.name: node for node in document.of("joint")}
    turning: Turning = {}
    for joint in joints:
        if joint.traits.hinge and joint.name in nodes:
            ends = frozenset((joint.parent or WORLD, joint.child))
            turning.setdefault(ends, []).append((nodes[joint.name], joint))
    for node in nodes.values():
        if node.part.text("type") != GEARBOX or node.static:
            continue
        ratio = node.part.number("gearbox_ratio", 1.0)
        if ratio == 0.0:
            raise node.part.error(
                "E-SDF-028", "gearbox_ratio is 0", "give a ratio, or fix the child link"
            )
        first, sense = _angle(node, "parent", "axis", turning)
        second, other = _angle(node, "child", "axis2", turning)
        yield gear(node.name, second, {first: -ratio * sense * other}, where=node.part.where)


def _angle(node: Node, tag: str, axis: str, turning: Turning) -> tuple[str, float]:
    """Return the joint that connects a link of a gearbox to the reference body, and a sign.

    The sign is +1 if the link rotates about the gearbox axis in the positive direction when the
    joint angle increases, and -1 otherwise.
    """
    ends = (end(node, x) for x in (tag, REFERENCE))
    link, reference = (WORLD if x is None else x.name for x in ends)
    wanted = direction(node, node.part.need(axis))
    for place, joint in turning.get(frozenset((link, reference)), ()):
        along = float((relative(place, node).R @ joint.axis).dot(wanted))
        if abs(along) > 1.0 - _PARALLEL:
            return joint.name, math.copysign(1.0, along if joint.child == link else -along)
    problem = f"no revolute joint parallel to <{axis}> connects {link!r} and {reference!r}"
    raise node.part.error("E-SDF-029", problem, "add such a joint")
