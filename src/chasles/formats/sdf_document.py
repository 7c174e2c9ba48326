"""An SDF file being read: its models, with those that it includes, as frames in their scopes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from chasles.errors import ModelError
from chasles.formats.files import load, short
from chasles.formats.sdf_frames import WORLD, Node, Scope
from chasles.formats.sdf_include import included
from chasles.formats.xml_document import parse
from chasles.formats.xml_part import Part, Source
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import matrix_from_quaternion
from chasles.mathematics.spatial import Transform

OLDEST, NEWEST = 4, 12
"""Minor versions of the format: what was before 1.4 has other elements."""

MAX_NESTING = 40
"""Models within models; included files count too."""

MAX_PARTS = 20_000
"""Models, links, joints and frames; files that include each other twice can make any number."""


def content(part: Part | None, default: str = "") -> str:
    """The text of an element without the space around it."""
    return default if part is None else (part.element.text or "").strip() or default


def number(part: Part, tag: str, default: float, *, infinite: bool = False) -> float:
    """The number in a child element."""
    child = part.find(tag)
    text = content(child)
    if child is None or not text:
        return default
    if infinite and text.lower().lstrip("+-") in ("inf", "infinity"):
        return math.copysign(math.inf, float(text))
    return float(child.numerals(tag, text, 1)[0])


def truth(part: Part | None, default: bool) -> bool:
    """Whether an element says so."""
    text = content(part).lower()
    if part is None or not text:
        return default
    if text not in ("true", "false", "1", "0"):
        raise part.error("E-SDF-009", f"{part.tag} is {short(text)}", "give true or false")
    return text in ("true", "1")


def placed(part: Part) -> tuple[Transform, str]:
    """What `<pose>` says of an element: the pose, and the name of the frame that it is in."""
    pose = part.find("pose")
    if pose is None:
        return Transform.identity(), ""
    base = pose.element.get("relative_to") or pose.element.get("frame") or ""
    text, angles = content(pose), pose.element.get("rotation_format", "euler_rpy")
    if angles == "quat_xyzw":
        x, y, z, *q = map(float, pose.numerals("pose", text or "0 0 0 0 0 0 1", 7))
        size = math.hypot(*q)
        if not 1e-9 < size < math.inf:
            raise pose.error("E-SDF-010", "the quaternion of pose has no length", "give a unit one")
        R = matrix_from_quaternion(Vector((q[3], q[0], q[1], q[2])))
        return Transform.from_pose(R, Vector.of(x, y, z)), base
    if angles != "euler_rpy":
        problem = f"rotation_format is {short(angles)}"
        raise pose.error("E-SDF-011", problem, "use euler_rpy or quat_xyzw")
    words = pose.numerals("pose", text or "0 0 0 0 0 0", 6)
    if pose.element.get("degrees", "") in ("true", "1"):
        words[3:] = [repr(math.radians(float(word))) for word in words[3:]]
    return pose.placement(Vector(tuple(map(float, words[:3]))), words[3:]), base


@dataclass
class Document:
    """A file being read. world: the `<world>`, or the `<sdf>` that has models only.

    ties: names of joints that are taken.
    """

    file: str
    world: Part
    top: Scope
    snap: bool
    notes: list[str]
    nodes: list[Node] = field(default_factory=list)
    ties: set[str] = field(default_factory=set)

    def of(self, kind: str) -> Iterator[Node]:
        """All links, joints or frames, in the order of the file."""
        return (node for node in self.nodes if node.kind == kind)

    def add(self, scope: Scope, part: Part, name: str, **facts: object) -> Node:
        """A new frame of a scope."""
        given, base = placed(part)
        facts = {"kind": part.tag, "given": given} | facts
        node = Node(part, name=scope.prefix + name, scope=scope, **facts)  # type: ignore[arg-type]
        node.base = base or node.base
        if len(self.nodes) >= MAX_PARTS:
            problem = f"more than {MAX_PARTS} links, joints and frames"
            raise ModelError("E-SDF-012", problem, "simplify the file", file=self.file)
        self.nodes.append(scope.add(node, name))
        if node.kind == "joint":
            self.ties.add(node.name)
        return node


def opened(file: str, *, snap: bool) -> Document:
    """The file, with all names, poses and included files read, not yet resolved."""
    notes: list[str] = []
    root, version = _root(file, snap, notes)
    worlds = list(root.all(WORLD))
    if len(worlds) > 1:
        raise worlds[1].error("E-SDF-013", "this is the second <world> of the file", "keep one")
    world = worlds[0] if worlds else root
    origin = Node(world, WORLD, "")
    top = Scope(version, origin, {WORLD: origin})
    document = Document(file, world, top, snap, notes)
    models = list(world.all("model", "include"))
    single = len(models) == 1 and world.find("joint") is None and world.find("frame") is None
    _parts(document, top, world, bare=single, above=(file,))
    return document


def _root(file: str, snap: bool, notes: list[str]) -> tuple[Part, int]:
    """The `<sdf>` element and the minor version of its format."""
    element = parse(file, load(file))
    part = Part(Source(file, "", snap, notes), element, "file")
    if element.tag != "sdf":
        problem = f"the document is a <{element.tag}>"
        raise part.error("E-SDF-014", problem, "an SDF file is an <sdf>")
    version = part.text("version")
    major, _, minor = version.partition(".")
    if major != "1" or not (minor.isascii() and minor.isdigit() and len(minor) < 4):
        raise part.error("E-SDF-015", f"version is {short(version)}", "give one like 1.9")
    if int(minor) < OLDEST:
        problem = f"version {version} is too old"
        raise part.error("E-SDF-016", problem, f"save the file as 1.{OLDEST} or newer")
    if int(minor) > NEWEST:
        part.note(f"version {version} is newer than 1.{NEWEST}, as which it is read")
    return part, int(minor)


def _parts(
    document: Document,
    scope: Scope,
    owner: Part,
    *,
    static: bool = False,
    bare: bool = False,
    above: tuple[str, ...],
) -> None:
    """The parts of a model or world.

    bare: those of models in it are named without the model. above: the files and models it is in.
    """
    for child in owner.all("link", "joint", "frame", "model", "include"):
        if child.tag == "include":
            _include(document, scope, child, static=static, bare=bare, above=above)
            continue
        part = child.named()
        name = part.text("name")
        if name == WORLD or (name.startswith("__") and name.endswith("__")):
            raise part.error("E-SDF-017", "SDF keeps this name for itself", "rename it")
        if child.tag == "model":
            _model(document, scope, part, static=static, bare=bare, above=above)
        elif child.tag == "link":
            document.add(scope, part, name, static=static)
        elif child.tag == "joint":
            end = content(part.find("child"))
            document.add(scope, part, name, base=end, on=end, static=static)
        else:
            on = part.element.get("attached_to", "")
            document.add(scope, part, name, base=on, on=on, static=static)


def _model(
    document: Document,
    scope: Scope,
    part: Part,
    *,
    version: int = 0,
    bare: bool = False,
    static: bool = False,
    above: tuple[str, ...],
) -> Node:
    """A model and its parts. version: of its own file. bare: its parts are named without it."""
    if len(above) > MAX_NESTING:
        problem = f"more than {MAX_NESTING} models within each other"
        raise part.error("E-SDF-018", problem, "nest them less")
    name = part.text("name")
    node = document.add(
        scope,
        part,
        name,
        on=part.element.get("canonical_link", ""),
        placement=part.element.get("placement_frame", ""),
    )
    if bare:
        node.name = ""
    node.inside = Scope(version or scope.version, node)
    still = static or truth(part.find("static"), False)
    _parts(document, node.inside, part, static=still, above=(*above, name))
    return node


def _include(
    document: Document,
    scope: Scope,
    part: Part,
    *,
    static: bool,
    bare: bool,
    above: tuple[str, ...],
) -> None:
    """A model of another file, with a name, place and the rest that the `<include>` may give."""
    uri, file = content(part.find("uri")), included(part, NEWEST)
    if file in above:
        raise part.error("E-SDF-019", f"{short(uri)} includes itself", "leave one <include> out")
    try:
        root, version = _root(file, document.snap, document.notes)
    except ModelError as error:
        problem = f"cannot include {short(uri)}: {error.fault}"
        raise part.error("E-SDF-020", problem, error.remedy) from None
    if root.find("model") is None and any(root.all("light", "actor")):
        part.note(f"{short(uri)} is no model, and not used")
        return
    model = _overridden(root.need("model"), part)
    within = (*above, file)
    if part.element.get("merge", "") in ("true", "1"):
        if scope.origin.kind == WORLD and model.find("link") is not None:
            problem = f"{short(uri)} has links, which a world cannot have"
            raise part.error("E-SDF-021", problem, "leave out merge")
        _merge(document, scope, model, version=version, static=static, above=within)
    else:
        _model(document, scope, model, version=version, static=static, bare=bare, above=within)


def _overridden(model: Part, include: Part) -> Part:
    """A model with what an `<include>` of it says in the place of its own."""
    if include.find("placement_frame") is not None and include.find("pose") is None:
        raise include.error("E-SDF-022", "placement_frame says what <pose> places", "add a <pose>")
    for key in ("name", "placement_frame"):
        if text := content(include.find(key)):
            model.element.set(key, text)
    for key in ("pose", "static"):
        own, given = model.find(key), include.find(key)
        if given is not None:
            if own is not None:
                model.element.remove(own.element)
            model.element.insert(0, given.element)
    return model.named()


def _merge(
    document: Document,
    scope: Scope,
    part: Part,
    *,
    version: int,
    static: bool,
    above: tuple[str, ...],
) -> None:
    """The parts of an included model as parts of the one that includes it, or of the world.

    Its own frame stays, by the name that sdformat gives it: `_merged__NAME__model__`.
    """
    if truth(part.find("static"), False) and not static:
        part.note("static is not used of a model that is merged, as SDF says")
    name = f"_merged__{part.text('name')}__model__"
    origin = document.add(
        scope,
        part,
        name,
        kind="frame",
        on=part.element.get("canonical_link", ""),
        placement=part.element.get("placement_frame", ""),
    )
    origin.inside = Scope(version, origin, into=scope)
    _parts(document, origin.inside, part, static=static, above=(*above, name))
