"""Validation of the messages that a viewer page sends."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chasles.errors import shown

LARGEST = 8 * 2**20
"""Maximum message size (bytes), enough for an uncompressed 1600 x 1000 screenshot."""


@dataclass
class Inputs:
    """Input widgets on a page. `known` maps viser's identifiers to the widgets."""

    known: Mapping[str, Any] = field(default_factory=dict)


def objection(letter: bytes | str, inputs: Inputs) -> str:
    """Return the reason for rejecting a message from a page, or "" to accept it."""
    if isinstance(letter, str):
        return "a message is text"
    import msgspec.msgpack

    try:
        fields = msgspec.msgpack.decode(letter)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return "a message is not MessagePack"
    if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
        return "a message has no type"
    kind = fields.pop("type")
    if kind not in FIELDS:
        return f"messages of type {shown(kind)!r} are not accepted"
    wanted = FIELDS[kind]
    if fields.keys() != wanted.keys():
        return f"{kind} has fields other than {', '.join(wanted)}"
    for name, holds in wanted.items():
        if not holds(fields[name]):
            return f"{kind}: {name} has a wrong shape or a value that is not finite"
    return _of_input(fields, inputs) if kind == "GuiUpdateMessage" else ""


def _of_input(fields: Mapping[str, Any], inputs: Inputs) -> str:
    """Return the reason for rejecting a new widget value, or "" to accept it."""
    handle = inputs.known.get(fields["uuid"])
    kinds = {kind.__name__ for kind in type(handle).__mro__}
    row = next((kind for kind in VALUES if kind in kinds), None)
    if handle is None or row is None:
        return "unknown input"
    if handle.disabled:
        return f"input {shown(str(handle.label))!r} cannot be changed"
    if fields["updates"].keys() != {"value"}:
        return "only the value of an input can be changed"
    if not VALUES[row](handle, fields["updates"]["value"]):
        return f"input {shown(str(handle.label))!r} cannot have this value"
    return ""


# Valid values of fields and widgets -------------------------------------------------------------


def _number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _pixels(value: Any) -> bool:
    return _number(value) and 0 <= value <= 100_000


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 200


def _numbers(count: int) -> Callable[[Any], bool]:
    return lambda x: isinstance(x, list) and len(x) == count and all(map(_number, x))


FIELDS: dict[str, dict[str, Callable[[Any], bool]]] = {
    "ViewerCameraMessage": {
        "wxyz": _numbers(4),
        "position": _numbers(3),
        "fov": _number,
        "near": _number,
        "far": _number,
        "image_height": _pixels,
        "image_width": _pixels,
        "look_at": _numbers(3),
        "up_direction": _numbers(3),
    },
    "TransformControlsDragStartMessage": {"name": _text, "owner": _text},
    "TransformControlsUpdateMessage": {
        "name": _text,
        "wxyz": _numbers(4),
        "position": _numbers(3),
        "owner": _text,
    },
    "TransformControlsDragEndMessage": {"name": _text, "owner": _text},
    "SceneNodeClickMessage": {
        "name": _text,
        "instance_index": lambda x: x is None,
        "ray_origin": _numbers(3),
        "ray_direction": _numbers(3),
        "screen_pos": _numbers(2),
        "modifier": lambda x: x is None or _text(x),
        "owner": _text,
    },
    "CommandTriggerMessage": {"uuid": _text},
    "GuiUpdateMessage": {"uuid": _text, "updates": lambda x: isinstance(x, dict)},
    "GetRenderResponseMessage": {
        "payload": lambda x: isinstance(x, bytes),
        "render_uuid": _text,
    },
    "FileTransferPartAck": {
        "source_component_uuid": lambda x: x is None or _text(x),
        "transfer_uuid": _text,
        "transferred_bytes": _number,
        "total_bytes": _number,
    },
}
"""Accepted messages, with a check for each field.

All other viser messages are rejected, including the request for a public server address.
"""

VALUES: dict[str, Callable[[Any, Any], bool]] = {
    "GuiSliderHandle": lambda _, value: _number(value),
    "GuiCheckboxHandle": lambda _, value: isinstance(value, bool),
    "GuiDropdownHandle": lambda handle, value: value in handle.options,
    "GuiButtonHandle": lambda _, value: isinstance(value, bool),
}
"""Checks for new values, by type of widget. Slider values are clipped later."""
