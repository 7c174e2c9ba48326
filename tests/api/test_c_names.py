"""Exported C of robots with awkward names compiles without name collisions."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from c_compiler import STRICT, compiler, run
from support import raises
from typer.testing import CliRunner

import chasles
from chasles.algorithms import METHODS
from chasles.backends.c.names import LONGEST, RESERVED, prefix_for, taken_by
from chasles.cli import app

LONG = "a_robot_with_a_very_long_name_" * 10

NAMES = {
    "test": "robot_test",
    "all": "robot_all",
    "install": "robot_install",
    "clean": "robot_clean",
    "math": "robot_math",
    "stddef": "robot_stddef",
    "stdio": "robot_stdio",
    "Float": "robot_float",
    "int": "robot_int",
    "class": "robot_class",
    "m": "robot_m",
    "CON": "robot_con",
    "features": "robot_features",
    "6dof": "x6dof",
    "x": "x",
    "": "robot_unnamed",
    "робот": "robot_8bcd3797",
    LONG: "a_robot_with_a_very_long_name_a_robot_w_9941a77a",
    "panda": "panda",
}
"""Names of robots, and the prefixes of their exported functions."""


def named(name: str) -> chasles.Robot:
    return chasles.Robot(replace(chasles.robots.planar(1).model.source, name=name))


def test_prefixes() -> None:
    for name, prefix in NAMES.items():
        found, note = prefix_for(name)
        assert found == prefix, name
        assert bool(note) == (found not in (name.lower(), f"x{name}")), name
        assert len(found) <= LONGEST
        assert not taken_by(found), found
    assert prefix_for("робот")[0] != prefix_for("робота")[0]
    assert prefix_for(LONG)[0] != prefix_for(LONG + "2")[0]
    for name in set().union(*RESERVED.values()):
        assert re.fullmatch(r"robot_[a-z][a-z0-9_]*", prefix_for(name)[0]), name


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:12]))
def test_every_name_builds(name: str, tmp_path: Path) -> None:
    """The code compiles with its folder in the include path, and the header compiles as C++."""
    paths = chasles.export(named(name), "mass_matrix", tmp_path)
    prefix = NAMES[name]
    assert paths[0].name == f"{prefix}.h"
    assert ("Note: names begin with" in paths[0].read_text()) == bool(prefix_for(name)[1])
    words = [*STRICT, "-O0", f"-I{tmp_path}", f"{prefix}.c", f"{prefix}_test.c", "-o", "t", "-lm"]
    run(compiler(), *words, cwd=tmp_path)
    assert "all agree" in run(tmp_path / "t").stdout
    (tmp_path / "main.cpp").write_text(
        f'#include "{prefix}.h"\n#include <cmath>\n#include <cstdio>\n#include <cstddef>\n'
        f"double at(double q) {{ double M; {prefix}_mass_matrix(&q, &M); return std::sin(M); }}\n"
    )
    run(compiler("g++"), "-Wall", "-Werror", f"-I{tmp_path}", "-c", "main.cpp", cwd=tmp_path)


def test_cmake_takes_every_prefix(tmp_path: Path) -> None:
    """All exports can be parts of one CMake project without collisions of target names."""
    cmake = compiler("cmake")
    top = ["cmake_minimum_required(VERSION 3.10)", "project(all_of_them C)", "enable_testing()"]
    for k, name in enumerate(NAMES):
        chasles.export(named(name), "mass_matrix", tmp_path / f"part{k}")
        top.append(f"add_subdirectory(part{k})")
    (tmp_path / "CMakeLists.txt").write_text("\n".join(top))
    run(cmake, "-S", ".", "-B", "build", cwd=tmp_path)
    prefix = NAMES["test"]
    run(cmake, "--build", "build", "--target", f"{prefix}_test", NAMES["m"], cwd=tmp_path)
    where = tmp_path / "build" / f"part{list(NAMES).index('test')}" / f"{prefix}_test"
    assert "all agree" in run(where).stdout


def test_functions_of_a_library_do_not_meet() -> None:
    """Names of functions, derivatives and batches differ if all functions are exported at once."""
    names = [*METHODS, *(f"{name}_derivatives" for name in METHODS)]
    every = [word for name in names for word in (name, f"{name}_batch")]
    assert len(every) == len(set(every))


def test_arguments_do_not_meet(tmp_path: Path) -> None:
    """Arguments have distinct names if names of frames are equal in C or end in a number."""
    arm = named("arm").model.source
    names = ("t", "t_5", "t~")
    robot = chasles.Robot(
        replace(arm, frames=tuple(replace(arm.frames[0], name=name) for name in names))
    )
    wrenches = {name: chasles.Wrench(np.zeros(6)) for name in names}
    header, *_ = chasles.export(robot, "forward_dynamics", tmp_path, f_ext=wrenches)
    found = re.findall(r"double (f_ext_\w+)\[6\]", header.read_text())
    assert found == ["f_ext_t", "f_ext_t_5", "f_ext_t_6"]


def test_given_prefixes_are_refused_by_what_has_them(tmp_path: Path) -> None:
    for prefix, words in (
        ("math", "a system header"),
        ("Test", "a CMake target"),
        ("m", "a system library"),
    ):
        with raises("E-EXPORT-010", words):
            chasles.export(named("arm"), "mass_matrix", tmp_path / "x", prefix=prefix)
    with raises("E-EXPORT-010", f"longer than {LONGEST} characters"):
        chasles.export(named("arm"), "mass_matrix", tmp_path / "x", prefix="a" * 300)
    assert not (tmp_path / "x").exists()


def test_the_command_says_so(tmp_path: Path) -> None:
    chasles.save(named("test"), tmp_path / "test.toml")
    words = ["export", str(tmp_path / "test.toml"), "-f", "mass_matrix", "-o", str(tmp_path / "c")]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "80", "NO_COLOR": "1"})
    assert result.exit_code == 0, result.output
    note = "note: names begin with 'robot_test', because 'test' is a CMake target"
    assert result.output.startswith(note), result.output
