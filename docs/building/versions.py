"""Build the websites of several releases, offline: `python docs/building/versions.py SITE TAG...`.

Each tag of the repository is built from its own sources into the folder SITE/TAG. Every page links
to the other releases, and SITE redirects to the first one.
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
    """Build the site of every tag; warnings are errors."""
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
    """Extract the files of a tag into a folder."""
    command = ["git", "archive", "--format=tar", tag]
    found = subprocess.run(command, cwd=root, check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as files:
        files.extractall(folder, filter="data")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: python docs/building/versions.py SITE TAG...")
    build(Path(sys.argv[1]), sys.argv[2:])
