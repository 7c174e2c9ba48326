"""Texts that a person can meet follow the rules of plain technical English.

The rules are mechanical: openings of docstrings, words with the field's term in their place, the
length of sentences, help texts with units, sections of public docstrings. The command
`python docs/building/texts.py` lists all texts.
"""

import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import typer
from building.texts import Text, pages, texts

import chasles
from chasles.cli.app import app

OPENINGS = ("What", "Of", "Where", "Whether", "How", "Those", "Such", "That", "Which", "Who")
"""Words with which no docstring begins: a verb or a noun comes first."""

TERMS = {
    r"(?i)(?<!degrees of )(?<!degree of )(?<!\*)\bfreedoms?\b": "degree of freedom, coordinate",
    r"(?<!there )\b(is|are) no (?!longer|more|less)\w": "is not a",
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
"""Words that are not the field's, as patterns, and the term to write instead."""

LONGEST = 35
"""Largest number of words of a sentence in a message."""

UNITS = re.compile(r"\b(s|m|rad|N|kg|Hz|pixels)\b|[Tt]olerance|gain|relative|per second|seed|Seed")
"""Units of numbers on the command line, and quantities without a unit of their own."""

ALLOWED = {
    "mobility = freedoms (of the tree)": "the name of an attribute",
    "others: beside(state) of each": "the name of a function",
    "freedoms must be": "the name of an argument",
    "freedoms : sequence of str": "the name of an argument",
    "beside : Robot, optional": "the name of an argument",
}
"""Texts that break a rule, by a part of them, and why."""

SECTIONED = ("chasles.api", "chasles.accuracy", "chasles.control", "chasles.exporting")
SECTIONED += ("chasles.checks.verify", "chasles.lint", "chasles.peers", "chasles.simulate")
SECTIONED += ("chasles.robot", "chasles.trajectory", "chasles.motion", "chasles.homogeneous")
SECTIONED += ("chasles.mathematics.homogeneous", "chasles.conventions", "chasles.robots")
SECTIONED += (
    "chasles.formats.registry",
    "chasles.model",
    "chasles.plots",
    "chasles.identification",
)
"""Modules whose public functions have all sections of numpydoc."""

UNSECTIONED = {"graph": "it needs a GPU", "enclosing_shapes": "it needs collision shapes of a file"}
UNSECTIONED |= {"position_slice": "one line", "velocity_slice": "one line"}
UNSECTIONED |= {"with_traits": "inherited"}
"""Public functions of these modules without an example or sections, and why."""

MODULES = ("contact", "control", "conventions", "homogeneous", "model", "robots", "trajectory")
"""Public modules whose functions have all sections."""

CLASSES = ("Robot", "Identified", "contact.Problem", "contact.SoftContact", "contact.SoftFriction")
CLASSES += ("contact.NormalLaw", "contact.ImpactLaw", "conventions.Convention", "plots.Plots")
"""Public classes whose methods have all sections."""


@cache
def found() -> tuple[Text, ...]:
    """Return all texts of the source except comments."""
    return tuple(texts(with_comments=False))


def allowed(text: Text) -> bool:
    flat = " ".join(text.text.split())
    return any(part in flat for part in ALLOWED)


@cache
def prose(text: str) -> str:
    """Return a text without code, quotations and examples, on one line."""
    plain = re.sub(r"`[^`]*`|>>>.*|\"[^\"\n]*\"|'[^'\n]*'", "X", text)
    return " ".join(plain.split())


def test_docstrings_open_with_a_verb_or_a_noun() -> None:
    odd = [t for t in found() if t.kind != "message" and t.summary.split(" ")[0] in OPENINGS]
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
    """A heading is what a reader would search for; pages under work elsewhere follow later."""
    later = ("docs/time-stepping.md", "docs/identification.md", "docs/theory")
    odd = [t for t in pages() if t.kind == "heading" and t.text.split(" ")[0] in OPENINGS[:5]]
    assert not [f"{t.place}: {t.text}" for t in odd if not t.place.startswith(later)]


def options() -> Iterator[tuple[str, Any]]:
    """Yield all options and arguments of all commands."""
    commands = typer.main.get_command(app).commands
    for name, command in commands.items():
        for parameter in command.params:
            if getattr(parameter, "help", None):
                yield f"{name} {parameter.name}", parameter


def kind(parameter: Any) -> str:
    """Return the type of a parameter, which releases of Typer keep in different places."""
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


def public() -> dict[str, Any]:
    """Return public functions and methods of the modules that have all sections."""
    modules = [chasles, *(importlib.import_module(f"chasles.{name}") for name in MODULES)]
    found = {f"{m.__name__}.{name}": getattr(m, name, None) for m in modules for name in dir(m)}
    for path in CLASSES:
        module, _, name = path.rpartition(".")
        owner = getattr(importlib.import_module(f"chasles.{module}".rstrip(".")), name)
        found |= {f"{path}.{name}": inspect.getattr_static(owner, name) for name in dir(owner)}
    return {
        name: value
        for name, value in found.items()
        if inspect.isfunction(value)
        and not name.rpartition(".")[2].startswith("_")
        and value.__module__.startswith(SECTIONED)
    }


@pytest.mark.parametrize("name", public())
def test_public_functions_have_sections(name: str) -> None:
    """Each has a summary of one line, its parameters, its results and an example."""
    function = public()[name]
    if name.rpartition(".")[2] in UNSECTIONED:
        return
    text = inspect.getdoc(function) or ""
    assert text.split("\n\n")[0].endswith("."), text
    taken = [p for p in inspect.signature(function).parameters if p not in ("self", "robot")]
    for title in ("Parameters",) * bool(taken) + ("Returns", "Examples"):
        assert f"{title}\n{'-' * len(title)}\n" in text, title
    listed = text.partition("Parameters\n")[2].partition("Returns\n")[0]
    if "**options" not in listed:
        assert not set(taken) - set(re.findall(r"\w+", listed)), "parameters that are not listed"


@pytest.mark.parametrize("name", public())
def test_examples_run(name: str) -> None:
    test = doctest.DocTestFinder().find(public()[name], name, globs={"np": np, "chasles": chasles})
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    for each in test:
        result = doctest.DocTestRunner(optionflags=flags).run(each)
        assert result.failed == 0, name
