"""Files that are read as a whole only, as lint sees them before that."""

from chasles.formats.files import load
from chasles.lint.sheet import Sheet


def survey(file: str, *, meshes: bool) -> Sheet:
    """Nothing but that the file can be read."""
    load(file)
    return Sheet(file)
