"""xacro files that are not trusted run no code and read only files of their packages."""

from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest
from support import raises
from xacro_files import HEAD

import chasles

COMMAND = (
    "(lambda: [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0]"
    ".__init__.__globals__['system']('touch {}'))()"
)
"""Expression that runs a command if Python evaluates it."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a package with another folder next to it."""
    for name in ("package/urdf", "package/.hidden", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "package/package.xml").write_text("<package><name>arm</name></package>")
    for name in ("package/part", "package/.hidden/part", "other/part"):
        (tmp_path / f"{name}.xacro").write_text(f'{HEAD}<link name="part"/></robot>')
        (tmp_path / f"{name}.yaml").write_text("name: part\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def links(body: str, *, trust: bool = False) -> list[str]:
    """Return the links of a robot with the given elements."""
    path = Path("package/urdf/arm.xacro")
    path.write_text(f"{HEAD}{body}</robot>")
    return [link.name for link in chasles.load(path, trust=trust).model.source.links]


def link(text: str) -> str:
    return f"<link name={quoteattr(text)}/>"


def given(name: str, text: str) -> str:
    return f"<xacro:property name={quoteattr(name)} value={quoteattr(text)}/>"


def test_a_trusted_file_runs_python(folder: Path) -> None:
    """The command of the other tests runs in a trusted file."""
    done = folder / "done"
    assert links(link(f"a${{{COMMAND.format(done)}}}"), trust=True) == ["a0"]
    assert done.exists()


@pytest.mark.parametrize("way", ["expression", "wide", "condition", "eval", "argument", "yaml"])
def test_a_file_runs_no_code(way: str, folder: Path) -> None:
    done = folder / "done"
    command = COMMAND.format(done)
    wide = command.replace("__", "_\uff3f")
    (folder / "package/part.yaml").write_text(f"!radians {command!r}\n")
    body = {
        "expression": link(f"${{{command}}}"),
        "wide": link(f"${{{wide}}}"),
        "condition": f"<xacro:if value={quoteattr(f'${{{command}}}')}/>",
        "eval": given("e", wide) + link("$(eval ${e})"),
        "argument": f"<xacro:arg name='a' default={quoteattr(f'${{{command}}}')}/>",
        "yaml": link("${xacro.load_yaml('../part.yaml')}"),
    }[way]
    with raises("E-XACRO-003", "arm.xacro:2: xacro: lambda is not", "with trust=True"):
        links(body)
    assert not done.exists()


def test_values_of_substitutions(folder: Path) -> None:
    """$(eval), $(optenv), $(arg) and YAML with units have the values that xacro gives."""
    (folder / "package/part.yaml").write_text("{turn: !degrees 180, parts: [{name: b}], n: 2}\n")
    body = "<xacro:arg name='n' default='3'/>" + given("y", "${xacro.load_yaml('../part.yaml')}")
    body += given("all", "$(eval n * 2)_$(optenv CHASLES_NOT_SET 5)_$(arg n)_${y.parts[0].name}")
    body += link("${all}_${y.n + 1}_${round(y.turn, 2)}_${[p.name for p in y['parts']]}")
    assert links(body) == links(body, trust=True) == ["6_5_3_b_3_3.14_['b']"]


def test_the_environment_is_not_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHASLES_SECRET", "secret")
    for text in ("$(env CHASLES_SECRET)", "$(optenv CHASLES_SECRET none)"):
        with raises("E-XACRO-003", "environment variable 'CHASLES_SECRET' is not read"):
            links(link(text))
    assert links(link("$(env CHASLES_SECRET)"), trust=True) == ["secret"]


def include(file: str) -> str:
    return f"<xacro:include filename={quoteattr(file)}/>"


def yaml(file: str) -> str:
    return link(f"${{xacro.load_yaml('{file}').name}}")


@pytest.mark.parametrize("read", [include, yaml])
def test_files_of_other_folders_are_not_read(read, folder: Path) -> None:  # type: ignore[no-untyped-def]
    """Files of the same package and of packages found by name are read, but never hidden files."""
    suffix = "xacro" if read is include else "yaml"
    (folder / "package/urdf/door").symlink_to(folder / "other")
    for name in ("../../other/part", f"{folder}/other/part", "../.hidden/part", "door/part"):
        with raises("E-XACRO-003", r"does not belong to a package of the file and is not read"):
            links(read(f"{name}.{suffix}"))
    for name in ("../part", "$(find arm)/part", "$(find other)/part"):
        assert links(read(f"{name}.{suffix}")) == ["part"]
    assert links(read(f"../../other/part.{suffix}"), trust=True) == ["part"]


def test_an_include_may_be_optional(folder: Path) -> None:
    assert links('<xacro:include filename="none.xacro" optional="true"/>' + link("a")) == ["a"]


BOMBS = {
    "lists": "a0: &a0 [x]\n"
    + "".join(f"a{k}: &a{k} [{','.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, 9)),
    "merges": "a0: &a0 {x: 1}\n"
    + "".join(f"a{k}: &a{k} {{<<: [{','.join([f'*a{k - 1}'] * 10)}]}}\n" for k in range(1, 9)),
    "cycle": "&a [*a, *a]\n",
    "depth": "[" * 10_000,
    "object": "!!python/object/apply:os.system [touch done]\n",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_yaml_that_means_harm_is_refused(bomb: str, folder: Path) -> None:
    (folder / "package/part.yaml").write_text(BOMBS[bomb])
    with raises("E-XACRO-002|E-XACRO-003"):
        links(yaml("../part.yaml").replace(".name", ""))
    assert not (folder / "done").exists()


def test_texts_that_double_are_refused(folder: Path) -> None:
    doubled = "".join(given(f"p{k}", f"${{p{k - 1}}}${{p{k - 1}}}") for k in range(1, 40))
    with raises("E-XACRO-003", "take too long"):
        links(given("p0", "xxxxxxxx") + doubled + link("${p39}"))
