"""Compare chasles with other libraries on all installed URDF files."""

import sys
from collections import Counter
from collections.abc import Collection

import chasles
from chasles.formats import registry
from chasles.peers import LIBRARIES


def answer(found: registry.Found, library: str) -> tuple[str, float, str]:
    """Return the outcome, the largest error of all terms, and an explanation."""
    try:
        robot = chasles.load(found.path, mimic=False, snap=False)
    except chasles.ModelError as error:
        return "not compared by chasles", 0.0, str(error)
    try:
        both = chasles.compare(robot, library, found.path)
    except ValueError as error:
        return "not read by the other library", 0.0, str(error)
    worst = max((term.error for _, term in both.terms), default=0.0)
    return ("agree", worst, "") if both.ok else ("differ", worst, f"{both.first}; {both.cause}")


def main(libraries: Collection[str] = tuple(LIBRARIES), names: Collection[str] = ()) -> None:
    robots = [r for r in registry.installed() if r.path.suffix == ".urdf"]
    chosen = [r for r in robots if not names or r.name in names]
    for library in libraries:
        counts: Counter[str] = Counter()
        worst = 0.0
        for found in chosen:
            word, error, text = answer(found, library)
            counts[word] += 1
            worst = max(worst, error) if word == "agree" else worst
            if text:
                print(f"{library}: {found.name}: {word}: {text}")
        summary = ", ".join(f"{count} {word}" for word, count in counts.items())
        print(f"{library}: {summary}; largest difference among those that agree: {worst:.1e}")


if __name__ == "__main__":
    main(sys.argv[1:] or tuple(LIBRARIES))
