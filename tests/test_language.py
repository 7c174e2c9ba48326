"""Texts that a person can meet keep the rules of plain technical English.

The rules are mechanical: how a docstring may open, words with the field's term in their place, the
length of sentences, and help texts with units. `python docs/building/texts.py` lists all texts.
"""

import re

import pytest
from building.texts import Text, texts

OPENINGS = ("What", "Of", "Where", "Whether", "How", "Those", "Such", "That", "Which", "Who")
"""Words with which no docstring begins: a verb or a noun comes first."""

TERMS = {
    r"(?<!degrees of )(?<!degree of )\bfreedoms?\b": "degree of freedom",
    r"(?<!there )\b(is|are) no (?!longer|more|less)\w": "is not a",
    r"\bcannot say\b": "cannot represent",
    r"\bbeside\b": "next to, together with, in addition to",
    r"\bcentres?\b": "center",
    r"\bcolours?\b": "color",
    r"\banew\b": "again",
    r"\bwhole numbers?\b": "integer",
    r"\bfrom (0|1) on\b": "non-negative, positive",
    r"\bat (first|last) \(": "initially, finally",
    r"\blet not\b": "lock",
    r"\bsay when\b": "evaluate at a time",
    r"\b(is|are) asked\b": "is called, is requested",
}
"""Words that are not the field's, as patterns, and the term to write."""

LONGEST = 35
"""Words of a sentence in a message."""

UNITS = re.compile(
    r"\b(s|m|rad|N|N m|kg|pixels|states?|seconds?)\b|[Tt]olerance|gain|limits|[Ff]rames per"
)
"""Units, and quantities that have none or that of a joint."""

ALLOWED = {}
"""Texts that break a rule, by a part of them, and why."""


def found() -> list[Text]:
    """Return all texts of the source except comments."""
    return [text for text in texts() if text.kind != "comment"]


def allowed(text: Text) -> bool:
    return any(part in text.text for part in ALLOWED)


def prose(text: str) -> str:
    """Return a text without code, quotations and examples."""
    return re.sub(r"`[^`]*`|>>>.*|\"[^\"\n]*\"|'[^'\n]*'", "X", text)


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
