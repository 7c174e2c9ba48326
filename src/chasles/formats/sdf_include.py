"""Where the files are that an SDF file includes: paths, folders of models, `model://` names."""

import os
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from chasles.formats.files import load, short
from chasles.formats.xml_document import parse
from chasles.formats.xml_part import Part
from chasles.model import ModelError

VARIABLES = ("SDF_PATH", "GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "GAZEBO_MODEL_PATH")
"""The lists of folders with models that Gazebo and sdformat look through."""

NAMED = ("model://", "package://")
"""What stands before the name of a model's folder, which may be in several places."""

MANIFEST = "model.config"
"""The file of a model's folder that names the others, by the version of their format."""


def included(part: Part, newest: int) -> str:
    """The file that an `<include>` names, in at most version 1.`newest` where there are several."""
    uri = (part.need("uri").element.text or "").strip()
    if uri.startswith(("http://", "https://")):
        raise part.error(f"uri is {short(uri)}; nothing is fetched: save the model, give its path")
    folder = Path(os.path.abspath(part.source.file)).parent
    named = next((uri.removeprefix(start) for start in NAMED if uri.startswith(start)), None)
    if named is None:
        path = Path(part.source.file).parent / uri.removeprefix("file://")
    else:
        name, _, rest = named.partition("/")
        places = [place / name / rest for place in _places(folder)]
        places += [above / rest for above in (folder, *folder.parents) if above.name == name]
        path = next((place for place in places if name and place.exists()), Path())
        if not path.name:
            raise part.error(
                f"{short(uri)} is neither beside the file nor in a folder above it, nor in one of "
                f"{', '.join(VARIABLES)}; put the model's folder there"
            )
    return os.fspath(_main(part, path, newest) if path.is_dir() else path)


def _places(folder: Path) -> Iterator[Path]:
    """Folders that may hold a model's: that of the file and those above it, then those listed."""
    yield from (folder, *folder.parents)
    for variable in VARIABLES:
        yield from map(Path, filter(None, os.environ.get(variable, "").split(os.pathsep)))


def _main(part: Part, folder: Path, newest: int) -> Path:
    """The file of a model's folder: the newest that can be read, `model.sdf` where none is told."""
    if not (folder / MANIFEST).is_file():
        return folder / "model.sdf"
    manifest = os.fspath(folder / MANIFEST)
    try:
        told = parse(manifest, load(manifest)).findall("sdf")
    except ModelError as error:
        raise part.error(str(error)) from None
    known = sorted((x for x in told if _version(x) <= newest), key=_version)
    names = [(element.text or "").strip() for element in known]
    return folder / next(filter(None, reversed(names)), "model.sdf")


def _version(element: etree._Element) -> int:
    """The minor one; 0 where it is not said."""
    minor = element.get("version", "").partition(".")[2]
    return int(minor) if minor.isascii() and minor.isdigit() and len(minor) < 4 else 0
