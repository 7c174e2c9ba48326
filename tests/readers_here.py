"""Readers that have a process of their own, run in this one: a hundred times as many files."""

import json
import os
from contextlib import AbstractContextManager, ExitStack, chdir
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

from chasles.formats import mjcf_source, xacro, xacro_child


class Here:
    """The tool of a format. program: the module whose `answer` runs it. name: as messages have it.

    Errors that would end the process behind the wall come through.
    """

    def __init__(self, program: Any, name: str) -> None:
        self.program, self.name = program, name

    def ask(self, file: str, *arguments: str) -> dict[str, Any]:
        """The answer about a file, by way of JSON as from another process."""
        file = os.path.abspath(file)
        with TemporaryDirectory() as folder, chdir(folder):  # MuJoCo writes a log
            try:
                found = dict(self.program.answer(file, *arguments))
            except ValueError as error:
                found = {"error": str(error)}
        return dict(json.loads(json.dumps(found)))


def readers_here(*, mujoco: bool = False) -> AbstractContextManager[Any]:
    """Run xacro, and MuJoCo's compiler if asked for, in this process."""
    within = ExitStack()
    within.enter_context(mock.patch.object(xacro, "XACRO", Here(xacro_child, "xacro")))
    if mujoco:
        from chasles.formats import mjcf_child

        here = Here(mjcf_child, "MuJoCo's compiler")
        within.enter_context(mock.patch.object(mjcf_source, "MUJOCO", here))
    return within
