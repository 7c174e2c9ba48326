"""Print the oldest allowed version of each dependency in a pyproject.toml, one per line."""

import sys
import tomllib
from pathlib import Path

for requirement in tomllib.loads(Path(sys.argv[1]).read_text("utf-8"))["project"]["dependencies"]:
    name, _, version = requirement.partition(">=")
    assert version, f"{requirement}: no oldest version"
    print(f"{name}=={version}")
