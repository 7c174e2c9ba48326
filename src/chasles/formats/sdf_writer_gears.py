"""Gears of a mechanism, written into an SDF file as gearbox joints."""

from lxml import etree

from chasles.formats.refusals import refusal
from chasles.formats.sdf_frames import WORLD
from chasles.formats.sdf_gears import KIND, REFERENCE
from chasles.formats.xml_document import added, words
from chasles.model import CouplingData, Description, JointData
from chasles.model.couplings import linear


def add_gears(model: etree._Element, source: Description) -> None:
    """A gearbox for each coupling; refused is what is no ratio of two turns from one link."""
    joints = {joint.name: joint for joint in source.joints}
    for data in source.couplings:
        slopes, constant = linear(data) or ([], 0.0)
        pair = [joints[name] for name in data.freedoms if name in joints]
        shared = _shared(pair)
        if constant or len(slopes) != 2 or shared is None:
            problem = "is no ratio of two revolute joints on one link"
            remedy = "save it as .toml or .xml"
            raise refusal("E-SDF-040", f"coupling {data.name!r}", problem, "SDF", remedy)
        _gearbox(model, data, pair, slopes, shared)


def _shared(pair: list[JointData]) -> str | None:
    """The link that both joints have, or the world."""
    if len(pair) != 2 or not all(joint.traits.hinge for joint in pair):
        return None
    first, second = ({joint.parent or WORLD, joint.child} for joint in pair)
    return next(iter(first & second), None)


def _gearbox(
    model: etree._Element,
    data: CouplingData,
    pair: list[JointData],
    slopes: list[float],
    shared: str,
) -> None:
    """From a q + b p = 0: with angles s q and t p against the shared link, t p = -(s t a/b) s q."""
    first, second = zip(pair, slopes, strict=True)
    if first[1] == 1.0:  # the child follows, with this factor, as it is read back
        first, second = second, first
    if _end(second[0], shared)[0] == WORLD:
        first, second = second, first
    ends = [_end(joint, shared) for joint, _ in (first, second)]
    ratio = ends[0][1] * ends[1][1] * first[1] / second[1]
    element = added(model, "joint", name=data.name, type=KIND)
    for tag, text in (
        ("parent", ends[0][0]),
        ("child", ends[1][0]),
        ("gearbox_ratio", words([ratio])),
        (REFERENCE, shared),
    ):
        added(element, tag).text = text
    for tag, (joint, _) in (("axis", first), ("axis2", second)):
        added(added(element, tag), "xyz", expressed_in=joint.name).text = words(joint.axis)


def _end(joint: JointData, shared: str) -> tuple[str, float]:
    """The other link of a joint, and the sense in which its coordinate turns that."""
    return (joint.child, 1.0) if shared != joint.child else (joint.parent or WORLD, -1.0)
