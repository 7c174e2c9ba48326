"""Where the files are that an SDF file includes: paths, folders of models, `model://` names."""

import os
from pathlib import Path

from lxml import etree

from chasles.errors import ModelError
from chasles.formats.files import load, short
from chasles.formats.resources import VARIABLES, candidates, package_of
from chasles.formats.xml_document import parse
from chasles.formats.xml_part import Part

MANIFEST = "model.config"
"""The file of a model's folder that names the others, by the version of their format."""


def included(part: Part, newest: int) -> str:
    """The file that an `<include>` names, in at most version 1.`newest` where there are several."""
    uri = (part.need("uri").element.text or "").strip()
    if uri.startswith(("http://", "https://")):
        problem = f"uri is {short(uri)}"
        raise part.error("E-SDF-030", problem, "nothing is fetched: save the model, give its path")
    path = Path(part.source.file).parent / uri.removeprefix("file://")
    if package_of(uri):
        found = next((x for x in candidates(uri, part.source.file) if x.exists()), None)
        if found is None:
            problem = (
                f"{short(uri)} is neither beside the file nor in a folder above it, nor in one of "
                f"{', '.join(VARIABLES)}"
            )
            raise part.error("E-SDF-031", problem, "put the model's folder there")
        path = found
    return os.fspath(_main(part, path, newest) if path.is_dir() else path)


def _main(part: Part, folder: Path, newest: int) -> Path:
    """The file of a model's folder: the newest that can be read, `model.sdf` where none is told."""
    if not (folder / MANIFEST).is_file():
        return folder / "model.sdf"
    manifest = os.fspath(folder / MANIFEST)
    try:
        told = parse(manifest, load(manifest)).findall("sdf")
    except ModelError as error:
        raise part.error("E-SDF-032", error.fault, error.remedy) from None
    known = sorted((x for x in told if _version(x) <= newest), key=_version)
    names = [(element.text or "").strip() for element in known]
    return folder / next(filter(None, reversed(names)), "model.sdf")


def _version(element: etree._Element) -> int:
    """The minor one; 0 where it is not said."""
    minor = element.get("version", "").partition(".")[2]
    return int(minor) if minor.isascii() and minor.isdigit() and len(minor) < 4 else 0
