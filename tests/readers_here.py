"""Run readers in this process instead of a separate one.

Tests can then read a hundred times as many files in the same time.
"""

import json
import os
from contextlib import AbstractContextManager, ExitStack, chdir
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from chasles.formats import mjcf_source, xacro, xacro_child


class Here:
    """Replacement of `chasles.formats.walled.Tool` that runs in this process.

    program is the module whose function `answer` runs the reader; name is the reader's name in
    messages. Errors other than ValueError are raised here; in a separate process, they would only
    end that process.
    """

    def __init__(self, program: Any, name: str) -> None:
        self.program, self.name = program, name

    def ask(self, file: str, *arguments: str) -> dict[str, Any]:
        """Return the result for a file, converted to JSON and back as between processes."""
        file = os.path.abspath(file)
        with TemporaryDirectory() as folder, chdir(folder):  # receives MuJoCo's log
            try:
                found = dict(self.program.answer(file, *arguments))
            except ValueError as error:
                found = {"error": str(error)}
        return dict(json.loads(json.dumps(found)))


def readers_here(*, mujoco: bool = False) -> AbstractContextManager[Any]:
    """Run xacro in this process, and MuJoCo's compiler too if requested."""
    within = ExitStack()
    within.enter_context(mock.patch.object(xacro, "XACRO", Here(xacro_child, "xacro")))
    if mujoco:
        from chasles.formats import mjcf_child

        here = Here(mjcf_child, "MuJoCo's compiler")
        within.enter_context(mock.patch.object(mjcf_source, "MUJOCO", here))
    return within
