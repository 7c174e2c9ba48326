"""Expand a xacro file in a separate process (`walled_program.py`).

The xacro package evaluates the expressions in a file as Python code. Unless the file is trusted,
`xacro_expressions` evaluates these expressions instead, environment variables are not read, and
only files in the packages that the file uses are read.

Every element that is not a xacro statement gets the attribute `chasles-origin`, "file:line". Macros
preserve this attribute, so messages about expanded elements can refer to the original line. This
module does not import chasles.
"""

import json
import os
import re
import runpy
import sys
import types
import xml.dom.minidom
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import xacro
from lxml import etree
from xacro import substitution_args

ORIGIN = "chasles-origin"

_clone = xml.dom.minidom.Element.cloneNode


class Asked(dict[str, str]):
    """Arguments of a file, which also records the names that the file asks for."""

    def __init__(self, given: dict[str, str]) -> None:
        super().__init__(given)
        self.names: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> str:
        self.names.add(name)
        return super().__getitem__(name)


def answer(file: str, arguments: str, most: str, trust: str) -> dict[str, Any]:
    """Expand a file to URDF; raise an error if the URDF has more than `most` bytes.

    `arguments` is {name: value} as JSON. `trust` is "yes" if the file may run Python. The answer
    contains the URDF, and the names of the arguments that the file asks for.
    """
    given = Asked(json.loads(arguments))
    packages = types.ModuleType("ament_index_python.packages")
    packages.get_package_share_directory = lambda name: found(name, file)  # type: ignore[attr-defined]
    sys.modules |= {"ament_index_python": packages, "ament_index_python.packages": packages}
    xacro.parse = parsed
    xml.dom.minidom.Element.cloneNode = cloned  # type: ignore[method-assign]
    if trust != "yes":
        distrust(file)
    try:
        document = xacro.process_file(file, mappings=given, verbosity=0)
        text = document.documentElement.toxml()
    except Exception as error:  # xacro propagates all exceptions from expressions
        said = (str(error) or repr(error)).removeprefix(f"{type(error)}: ")
        what = re.sub(r"^(.+) \1$", r"\1", " ".join(said.split()))  # xacro repeats some messages
        endless = "maximum recursion depth" in what
        what = "macros or included files are infinitely recursive" if endless else what
        refused = refusal(error)
        what = what if refused is None else refused.told
        raise complaint(file, what, place(error), refused is not None) from None
    count = len(text.encode())
    if count > int(most):
        raise complaint(file, f"the resulting URDF would have {count} bytes")
    return {"urdf": text, "arguments": sorted(given.names)}


def parsed(given: Any, filename: str | None = None) -> Any:
    """Parse a file for xacro, reject entities, and record the file and line of each element."""
    if given is not None or filename is None:
        return given
    if not os.path.isfile(filename):
        xacro.filestack.pop()  # so that the error names the file that contains the include
        what = f"the included file {os.path.basename(filename)!r} does not exist"
        # xacro ignores this error for an <xacro:include> with optional="true"
        raise xacro.XacroException(what, exc=FileNotFoundError())
    plain = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True)
    try:
        root = etree.fromstring(Path(filename).read_bytes(), plain)
    except etree.XMLSyntaxError as error:
        raise xacro.XacroException(f"invalid XML at line {error.lineno}: {error.msg}") from None
    if root.getroottree().docinfo.internalDTD is not None:
        raise xacro.XacroException("document type declarations and entities are not supported")
    for element in root.iter(etree.Element):
        if element.prefix != "xacro":
            element.set(ORIGIN, f"{filename}:{element.sourceline}")
    document = xml.dom.minidom.parseString(etree.tostring(root))
    for element, node in zip(root.iter(etree.Element), elements(document), strict=True):
        node.place = f"{os.path.abspath(filename)}:{element.sourceline}"
    return document


def elements(node: Any) -> Iterator[Any]:
    """Yield a node, if it is an element, and all elements below it in document order."""
    pending = [node]
    while pending:
        node = pending.pop()
        if node.nodeType == node.ELEMENT_NODE:
            yield node
        pending += reversed(node.childNodes)


def cloned(self: Any, deep: bool) -> Any:
    """Copy an element with its file and line, when xacro expands a macro or block."""
    copy = _clone(self, deep)
    for mine, its in zip(elements(self), elements(copy), strict=False):
        if hasattr(mine, "place"):
            its.place = mine.place
    return copy


def place(error: BaseException) -> str:
    """Return the file and line of the innermost element in which an error was raised, or ""."""
    found, trace = "", error.__traceback__
    while trace is not None:
        for name in ("node", "elt"):  # local variables in xacro's functions
            found = getattr(trace.tb_frame.f_locals.get(name), "place", found)
        trace = trace.tb_next
    return found


def found(package: str, file: str) -> str:
    """Return the folder of a package.

    The parent folders of the file, and their subfolders, are searched for a folder that has the
    name of the package, or that contains a package.xml with this name. The home folder, its parent
    folders, and subfolders of these parent folders are accepted only with such a package.xml.
    """
    home = Path(os.path.expanduser("~"))
    shared = (home, *home.parents)
    for above in Path(file).resolve().parents:
        for folder in (above, above / package):
            manifest = folder / "package.xml"
            said = manifest.read_text("utf-8", "replace") if os.path.isfile(manifest) else ""
            private = folder not in shared and (folder == above or above not in home.parents)
            named = folder.name == package and os.path.isdir(folder) and private
            if named or f"<name>{package}</name>" in said:
                reach.append(folder)
                return str(folder)
    raise xacro.XacroException(
        f"package {package!r} was not found in the parent folders of the file or their subfolders"
    )


# Untrusted files -------------------------------------------------------------------------------

_expressions = runpy.run_path(str(Path(__file__).with_name("xacro_expressions.py")))
Refused = _expressions["Refused"]

MOST_YAML, MOST_MERGED = 2**20, 10_000
"""Maximum size of a YAML file (bytes), and maximum number of entries in a merged YAML mapping."""

_Loader = substitution_args.yaml.SafeLoader
_flatten = _Loader.flatten_mapping

reach: list[Path] = []
"""Package folders from which files may be read while an untrusted xacro file is processed.

The first folder is the package that contains the xacro file or, outside a package, the folder of
the file.
"""


def distrust(file: str) -> None:
    """Make xacro evaluate expressions without Python and read only files in `reach`."""
    folder = Path(os.path.realpath(file)).parent
    packages = (above for above in (folder, *folder.parents) if (above / "package.xml").is_file())
    reach[:] = [next(packages, folder)]

    def checked(given: Any, filename: str | None = None) -> Any:
        if filename not in (None, file):
            check_reach(str(filename))
        return parsed(given, filename)

    symbols = xacro._global_symbols
    spaces = [x for x in symbols.values() if isinstance(x, xacro.NameSpace)]
    functions = _expressions["FUNCTIONS"] | dict(symbols["xacro"].items())
    functions |= {"load_yaml": load_yaml, "tokenize": tokenize}
    known = [(x, functions[name]) for scope in (symbols, *spaces) for name, x in scope.items()
             if name in functions]  # fmt: skip
    plain = {name: x for name, x in substitution_args._eval_dict.items() if name[0] != "_"}
    plain |= {name: symbols[name] for name in ("list", "dict", "map", "str", "float", "int")}
    plain |= {"env": variable, "optenv": variable}
    known += [(x, x) for x in (variable, plain["find"], argument)]
    tables = (xacro.YamlDictWrapper, xacro.NameSpace)
    evaluate = _expressions["Evaluator"](known, tables, tables[1:])

    def substituted(expression: str, context: dict[str, Any]) -> str:
        """Evaluate $(eval expression); arguments are converted to numbers if possible."""
        names = substitution_args._DictWrapper(context["arg"], plain | {"arg": argument})
        return str(evaluate(expression, names))

    xacro.parse, _Loader.flatten_mapping = checked, flattened
    xacro.safe_eval = lambda expression, names, local=None: evaluate(expression, names)
    substitution_args._eval = substituted
    substitution_args._eval_env = substitution_args._eval_optenv = variable


def argument(name: str) -> Any:
    """Evaluate $(eval arg(name)): return an argument, converted to a number if possible."""
    given = xacro.substitution_args_context["arg"]
    return substitution_args.convert_value(substitution_args._eval_arg(name, given), "auto")


def variable(name: str, default: str | None = None) -> str:
    """Return the default of an unset environment variable; refuse to read one that is set.

    Untrusted files must not read the values of environment variables.
    """
    if name in os.environ:
        raise Refused(f"environment variable {name!r} is not read")
    if default is None:
        raise xacro.XacroException(f"environment variable {name!r} is not set")
    return default


def check_reach(filename: str) -> None:
    """Raise an error for a hidden file, or for a file outside the packages in `reach`."""
    path = Path(os.path.realpath(filename))
    inner = [path.relative_to(top) for top in map(Path.resolve, reach) if path.is_relative_to(top)]
    if not any(all(part[0] != "." for part in rest.parts) for rest in inner):
        raise Refused(f"{filename} does not belong to a package of the file and is not read")


def load_yaml(filename: str) -> Any:
    """Read a YAML file with xacro; raise an error if it is outside `reach` or too large."""
    check_reach(xacro.abs_filename_spec(filename))
    if os.path.getsize(xacro.abs_filename_spec(filename)) > MOST_YAML:
        raise Refused(f"{filename} is larger than {MOST_YAML} bytes")
    try:
        return xacro.load_yaml(filename)
    except RecursionError:
        raise xacro.XacroException(f"{filename} is nested too deeply") from None


def flattened(self: Any, node: Any) -> None:
    """Merge YAML mappings; raise an error if the result has more than `MOST_MERGED` entries."""
    _flatten(self, node)
    if len(node.value) > MOST_MERGED:
        raise Refused(f"a YAML mapping has more than {MOST_MERGED} entries")


def tokenize(text: str, sep: str = ",; ", skip_empty: bool = True) -> list[str]:
    """Split a string at separators.

    Square brackets, ^ and backslashes are not supported as separators.
    """
    if set(sep) & set("[]^\\"):
        raise Refused(f"separators {sep!r} are not supported")
    parts: list[str] = xacro.tokenize(text, sep, skip_empty)
    return parts


def refusal(error: BaseException | None) -> Any:
    """Return the `Refused` exception that caused an error, or None."""
    while error is not None and not isinstance(error, Refused):
        error = getattr(error, "exc", None) or error.__context__
    return error


# Errors ----------------------------------------------------------------------------------------


def complaint(file: str, what: str, at: str = "", refused: bool = False) -> ValueError:
    """Return an error with its file, line and enclosing macros.

    `refused` is True if the expression may be valid in a trusted file.
    """
    files = [name for name in xacro.filestack or [] if name] or [file]
    called = [macro.body.getAttribute("name") for macro in xacro.macrostack or []]
    macros = list(dict.fromkeys(called[::-1]))[:4]
    line = re.search(r"(?: at line |: line )(\d+)", what)  # in messages about XML syntax
    if line is not None:
        at = f"{os.path.abspath(files[-1])}:{line[1]}"
    told = {"at": at or os.path.abspath(files[-1]), "macros": macros, "what": what}
    told |= {"refused": refused}
    return ValueError(json.dumps(told))
