"""Texts in the source and on the pages follow the rules of plain technical English.

The rules apply to the library and to the code around it: tests, benchmarks, fuzzers and examples.
The rules are mechanical: openings of docstrings, terms of the field, lengths of sentences, help
texts with units, and sections of public docstrings. `python docs/building/texts.py` lists all
texts.
"""

import doctest
import importlib
import inspect
import operator
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import raised
import typer
from building.texts import ROOT, Text, joined, pages, texts
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import validate

import chasles
from chasles.cli.app import app
from chasles.errors import ArgumentError, InputError

OPENINGS = ("What", "Of", "Where", "Whether", "How", "Those", "Such", "That", "Which", "Who")
"""Words with which a docstring does not begin, because it begins with a verb or a noun."""

TERMS = {
    r"(?i)(?<!degrees of )(?<!degree of )(?<!\*)\bfreedoms?\b": "degree of freedom, coordinate",
    r"(?<![Tt]here )\b(is|are) no (?!longer|more|less|farther)\w": "is not a",
    r"\bcannot say\b": "cannot represent",
    r"(?<!-)\bbeside\b": "next to, relative to, in addition to",
    r"\bcentres?\b": "center",
    r"\bcolours?\b": "color",
    r"\banew\b": "again",
    r"\bwhole numbers?\b": "integer",
    r"\bfrom (0|1) on\b": "non-negative, positive",
    r"\blet not\b": "lock",
    r"\bsay when\b": "evaluate at a time",
    r"\b(is|are) asked\b": "is called, is requested",
}
"""Words that are not terms of the field, as patterns, and the terms to use instead."""

LONGEST = 35
"""Maximum number of words in a sentence of a message."""

UNITS = re.compile(r"\b(s|m|rad|N|kg|Hz|pixels)\b|[Tt]olerance|gain|relative|per second|seed|Seed")
"""Units of values on the command line, and quantities that have no unit of their own."""

ALLOWED = {
    "mobility, freedoms Degrees of freedom": "the name of an attribute",
    "freedoms Names of": "the name of an attribute",
    "others: beside(state) of each": "the name of a function",
    "`freedoms` must be": "the name of an argument",
    "freedoms : sequence of": "the name of an argument",
    "beside : Robot, optional": "the name of an argument",
}
"""Parts of texts that may break a rule, with the reason."""

SECTIONED = ("contact", "control", "conventions", "distances", "expr", "homogeneous", "learning")
SECTIONED += ("identification", "model", "motion.options", "plots", "robots", "rollouts")
SECTIONED += ("numeric.sparse", "numeric.subspaces", "simulate", "targets", "trajectory")
"""Public modules; their functions and the methods of their classes need all sections."""

RESULTS = ("functions.compiled.Compiled", "functions.cost.Cost", "functions.cost.Explanation")
RESULTS += ("functions.devices.Automatic", "functions.numeric.BaseParameters", "plots.Plots")
RESULTS += ("accuracy.Condition", "mechanisms.reports.Mobility", "mechanisms.mobility.Cluster")
RESULTS += ("robot.identity.Limits", "robot.machine.Actuators", "robot.machine.Keyframe")
RESULTS += ("checks.verify.Result", "peers.Agreement", "formats.registry.Found")
RESULTS += tuple(f"mathematics.linear.{name}" for name in ("Vector", "Matrix", "Symmetric"))
RESULTS += ("mathematics.rotations.Rotation", "mathematics.spatial.Transform")
RESULTS += tuple(f"mathematics.spatial.{name}" for name in ("Motion", "Force", "RigidInertia"))
"""Classes of results and of user-defined joints (`docs/api`); their methods need all sections."""

UNSECTIONED = {
    "Compiled.entry": "used by Robot alone",
    "Compiled.again": "used by Robot alone",
    "Compiled.differential": "used by pushforward and pullback",
}
"""Functions whose docstrings need no sections, with the reason."""

WITHOUT_EXAMPLE = {
    "Compiled.from_host": "the example needs a GPU",
    "Task": "a protocol; the class has one example of all methods",
    "RobotVectorEnv": "Task has the example",
}
"""Classes and functions without an example, with the reason."""

OPTIONS = {
    "Robot.rollout_pullback": "Robot.rollout lists the options",
    "chasles.simulate.simulate": "Robot.simulate lists the options",
    "Robot.simulate": "the options are listed by topic, and only the first ones in order",
    "Robot.rollout": "the options are listed by topic, and only the first ones in order",
}
"""Functions whose parameters are listed as `**options` or in another order, with the reason."""

NUMPYDOC = {
    "SA01": "See Also is optional",
    "ES01": "an extended summary is optional",
    "EX01": "WITHOUT_EXAMPLE lists the exceptions",
    "RT02": "results have names",
    "GL08": "a method without a docstring inherits one, which is checked",
}
"""Rules of numpydoc that do not apply, with the reason."""

SILENT = {
    "chasles.backends.cache._opened": "a failure to use the cache is not an error",
    "chasles.functions.compiled.Compiled.__init__": "the options are checked before",
    "chasles.functions.compiled.Compiled._trace": "the options are checked before",
    "chasles.mathematics.tensor.tensor_product": "the operands are vectors",
    "chasles.model.denavit_hartenberg.DHRow._check_kind": "the rows of built-in arms are valid",
    "chasles.model.given.is_finite": "it returns False instead",
    "chasles.motion.contact.pairs.Placed._programs": "the robot has the frames",
    "chasles.motion.geometry.closed_forms.Ground._slopes": "the coordinates are arrays of floats",
    "chasles.motion.geometry.shapes.ConvexMesh._hull": "the shape checks it when it is made",
    "chasles.motion.laws.soft.check_law": "the law checks its values when it is made",
}
"""Helpers whose errors do not reach users of the functions that call them, with the reason."""

COMPILED = {"chasles.robot.robot.Robot._call": (InputError, ArgumentError)}
"""Errors that compiled code and its checks raise, by the helper that calls it."""

ERRORS = ("errors", "mechanisms.reports", "motion.solvers")
"""Modules that define the errors that the section Raises may name."""


FOLDERS = ("src/chasles", "tests", "benchmarks", "fuzz", "examples", "docs/building", ".ci")
"""Folders of Python files whose docstrings, messages, help texts and comments are checked."""


@cache
def found() -> tuple[Text, ...]:
    """Return all texts of Python files."""
    return tuple(text for folder in FOLDERS for text in texts(ROOT / folder))


def allowed(text: Text) -> bool:
    flat = " ".join(text.text.split())
    return any(part in flat for part in ALLOWED)


@cache
def prose(text: str) -> str:
    """Return a text without code, quotations and examples, on one line."""
    plain = re.sub(r"`[^`]*`|>>>.*|\"[^\"\n]*\"|'[^'\n]*'", "X", text)
    return " ".join(plain.split())


def test_errors_are_listed_with_their_remedies() -> None:
    """The list for review shows the problem and the remedy together, and each part only once."""
    file = ROOT / "src/chasles/view/policy.py"
    parts = [t.text for t in texts(file) if t.kind == "message"]
    whole = [t.text for t in joined(texts(file)) if t.kind == "message"]
    assert len(parts) == 2 * len(whole) > 0
    assert "; ".join(parts) in whole


def test_docstrings_open_with_a_verb_or_a_noun() -> None:
    kinds = ("docstring", "help")
    odd = [t for t in found() if t.kind in kinds and t.summary.split(" ")[0] in OPENINGS]
    assert not [f"{t.place}: {t.summary}" for t in odd if not allowed(t)]


@pytest.mark.parametrize("pattern", TERMS)
def test_terms_are_those_of_the_field(pattern: str) -> None:
    odd = [t for t in found() if re.search(pattern, prose(t.text))]
    assert not [f"{t.place}: {t.summary}" for t in odd if not allowed(t)], TERMS[pattern]


def test_sentences_of_messages_are_short() -> None:
    odd = [
        f"{t.place}: {t.text}"
        for t in found()
        if t.kind in ("message", "help")
        for sentence in re.split(r"[.;:] ", t.text)
        if len(sentence.split()) > LONGEST and not allowed(t)
    ]
    assert not odd


def test_headings_do_not_open_with_questions() -> None:
    """Headings are search terms, not questions."""
    odd = [t for t in pages() if t.kind == "heading" and t.text.split(" ")[0] in OPENINGS]
    assert not [f"{t.place}: {t.text}" for t in odd]


def options() -> Iterator[tuple[str, Any]]:
    """Yield all options and arguments of all commands."""
    commands = typer.main.get_command(app).commands
    for name, command in commands.items():
        for parameter in command.params:
            if getattr(parameter, "help", None):
                yield f"{name} {parameter.name}", parameter


def kind(parameter: Any) -> str:
    """Return the type of a parameter, whose attribute depends on the release of Typer."""
    found = getattr(parameter, "bare_type", None) or getattr(parameter, "type", "")
    return str(found() if inspect.ismethod(found) else found).lower()


def test_help_begins_with_a_verb_or_a_noun() -> None:
    found = {name: parameter.help for name, parameter in options()}
    assert len(found) > 100
    odd = {n: h for n, h in found.items() if not h[0].isupper() and h[0] not in "./"}
    odd |= {n: h for n, h in found.items() if h.split(" ")[0] in (*OPENINGS, "The", "A", "Its")}
    assert not odd


def test_numbers_on_the_command_line_have_units() -> None:
    numbers = {n: p.help for n, p in options() if "float" in kind(p)}
    assert numbers
    assert not {name: text for name, text in numbers.items() if not UNITS.search(text)}


def methods(kind: type) -> dict[str, Any]:
    """Return the public methods of a class that chasles defines, with the name of the class."""
    found = {}
    for name in dir(kind):
        value = inspect.getattr_static(kind, name)
        value = getattr(value, "__func__", value)  # for static and class methods
        if inspect.isfunction(value) and not name.startswith("_"):
            found[f"{kind.__name__}.{name}"] = value
    return {name: value for name, value in found.items() if value.__module__.startswith("chasles")}


def own(module: Any) -> list[str]:
    """Return the names that a module without `__all__` defines."""
    return [n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__]


@cache
def public() -> dict[str, Any]:
    """Return all public functions and methods, each once."""
    modules = [chasles, *(importlib.import_module(f"chasles.{name}") for name in SECTIONED)]
    values = [getattr(m, name) for m in modules for name in getattr(m, "__all__", own(m))]
    for path in RESULTS:
        module, _, name = path.rpartition(".")
        values.append(getattr(importlib.import_module(f"chasles.{module}"), name))
    found: dict[str, Any] = {}
    for value in values:
        if inspect.isclass(value) and value.__module__.startswith("chasles"):
            found |= methods(value)
        elif inspect.isfunction(value) and not value.__name__.startswith("_"):
            found[f"{value.__module__}.{value.__name__}"] = value
    return {name: value for name, value in found.items() if value.__module__.startswith("chasles")}


def sections(text: str) -> dict[str, str]:
    """Return the sections of a docstring by title."""
    parts = re.split(r"^([A-Z][\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(section: str) -> dict[str, str]:
    """Return the entries of a section: their descriptions by name."""
    parts = re.split(r"^(\S.*)$", section, flags=re.MULTILINE)
    found = zip(parts[1::2], parts[2::2], strict=True)
    heads = ((head.partition(" : ")[0], " ".join(text.split())) for head, text in found)
    return {name: text for head, text in heads for name in head.split(", ")}


@cache
def documented() -> dict[str, tuple[Any, dict[str, str]]]:
    """Return the public functions whose docstrings need sections, with their sections."""
    found = {name: function for name, function in public().items() if name not in UNSECTIONED}
    return {name: (f, sections(inspect.getdoc(f) or "")) for name, f in found.items()}


def test_exceptions_exist() -> None:
    known = {part for name in public() for part in (name, name.partition(".")[0])}
    assert not {*UNSECTIONED, *WITHOUT_EXAMPLE, *OPTIONS} - known
    for place in SILENT:
        module, name = re.fullmatch(r"([a-z_.]+)\.((?:[A-Z]\w+\.)?\w+)", place).groups()
        assert operator.attrgetter(name)(importlib.import_module(module))
    assert len(public()) > 500


def test_public_functions_have_sections() -> None:
    """Each has a one-line summary, its parameters, its results and an example."""
    for name, (function, found) in documented().items():
        text = inspect.getdoc(function) or ""
        assert text.split("\n\n")[0].endswith("."), (name, text)
        signature = inspect.signature(function)
        assert "Returns" in found or signature.return_annotation is None, name
        assert {name, name.partition(".")[0]} & set(WITHOUT_EXAMPLE) or "Examples" in found, name
        taken = {p for p in signature.parameters if p not in ("self", "cls")}
        listed = {entry.lstrip("*") for entry in entries(found.get("Parameters", ""))}
        assert "options" in listed if name in OPTIONS and taken - listed else taken == listed, name


def test_docstrings_follow_numpydoc() -> None:
    """Sections, parameters and types are as numpydoc requires, except for some rules."""
    odd = [
        f"{name}: {code} {message}"
        for name, (function, _) in documented().items()
        for code, message in validate(get_doc_object(function))["errors"]
        if code not in NUMPYDOC and not (name in OPTIONS and code in ("PR01", "PR02", "PR03"))
    ]
    assert not odd


def test_errors_are_listed() -> None:
    """The section Raises names each error that a function or its helpers raise."""
    every = {raised.plain(function) for function in public().values()}
    for name, (function, found) in documented().items():
        errors = raised.errors_of(function, every, set(SILENT), COMPILED)
        listed = entries(found.get("Raises", ""))
        left_out = {e: places for e, places in errors.items() if e.__name__ not in listed}
        assert not left_out, f"{name}: errors that the section Raises does not name: {left_out}"


@pytest.mark.parametrize(
    ("name", "error", "place"),
    [
        ("Robot.joint", "ModelError", "robot.robot.Robot.joint"),
        ("Robot.subtree", "ArgumentError", "model.given.a_name"),
        ("Move.save", "InputError", "trajectory.moves.Move.times"),
        ("chasles.model.couplings.coupling", "ModelError", "model.couplings.coupling"),
        ("chasles.motion.contact.from_file.file_pairs", "InputError", "pairs.Rigid.__post_init__"),
        ("chasles.trajectory.lines.line", "InputError", "trajectory.lines.Guided._begin"),
    ],
)
def test_errors_of_helpers_are_found(name: str, error: str, place: str) -> None:
    """Helpers: functions, methods, nested functions, new objects, and methods of local objects."""
    found = {e.__name__: places for e, places in raised.errors_of(public()[name], ()).items()}
    assert any(each.endswith(place) for each in found[error])


def test_listed_errors_exist() -> None:
    """Each entry of the section Raises is an error, and its description is a condition."""
    for name, (_, found) in documented().items():
        for error, text in entries(found.get("Raises", "")).items():
            assert error in known_errors(), (name, error)
            assert re.match(r"If .*\.$", text), (name, error, text)


@cache
def known_errors() -> dict[str, type[Exception]]:
    """Return the errors of the package by name."""
    found = [vars(importlib.import_module(f"chasles.{name}")) for name in ERRORS]
    kinds = [value for names in found for value in names.values() if inspect.isclass(value)]
    return {kind.__name__: kind for kind in kinds if issubclass(kind, Exception)}


@pytest.mark.parametrize("name", public())
def test_examples_run(name: str) -> None:
    test = doctest.DocTestFinder().find(public()[name], name, globs={"np": np, "chasles": chasles})
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    for each in test:
        result = doctest.DocTestRunner(optionflags=flags).run(each)
        assert result.failed == 0, name
