"""Sites of several releases side by side: `python docs/building/versions.py SITE TAG...`, offline.

Each tag of the repository is built as its own sources say, into SITE/TAG; every page links to the
others, and SITE itself leads to the first.
"""

import io
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]


def build(site: Path, tags: Sequence[str], root: Path = ROOT) -> None:
    """The site of every tag; warnings are errors."""
    for tag in tags:
        with tempfile.TemporaryDirectory() as folder:
            extract(root, tag, Path(folder))
            command = [sys.executable, "-m", "sphinx", "-W", "-n", "-q"]
            listed = ["-A", f"versions={' '.join(tags)}"]
            subprocess.run(
                [*command, *listed, "docs", str(site.resolve() / tag)], cwd=folder, check=True
            )
    first = f'<meta http-equiv="refresh" content="0; url={tags[0]}/index.html">\n'
    (site / "index.html").write_text(f"<!doctype html>\n{first}", "utf-8")


def extract(root: Path, tag: str, folder: Path) -> None:
    """The files of a tag."""
    command = ["git", "archive", "--format=tar", tag]
    found = subprocess.run(command, cwd=root, check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as files:
        files.extractall(folder, filter="data")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: python docs/building/versions.py SITE TAG...")
    build(Path(sys.argv[1]), sys.argv[2:])
