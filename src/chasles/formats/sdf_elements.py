"""Elements of SDF files, written: those with a text, and poses."""

from lxml import etree

from chasles.formats.numbers import angle_word
from chasles.formats.xml_document import added, words
from chasles.mathematics.rotations import rpy_from_matrix
from chasles.mathematics.spatial import Transform


def add_text(parent: etree._Element, tag: str, text: str, **attributes: str) -> etree._Element:
    """A new element with a text."""
    element = added(parent, tag, **attributes)
    element.text = text
    return element


def add_pose(element: etree._Element, pose: Transform, base: str = "") -> None:
    """Of an element, in the frame that it has without being said or in another."""
    if base or not pose.is_identity:
        angles = " ".join(map(angle_word, rpy_from_matrix(pose.R)))
        add_text(
            element, "pose", f"{words(pose.r)} {angles}", **({"relative_to": base} if base else {})
        )
