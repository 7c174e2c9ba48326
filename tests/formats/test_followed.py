"""Robot files run no code and open few other files, according to Python's audit log."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support import raises

import chasles

EVIL = "<plugin name='p' filename='evil.so'><a>1</a></plugin>"
MESH = "<geometry><mesh filename='evil.stl'/></geometry>"
LINK = "<link name='a'/>"
FILES = {
    "arm.urdf": f"<robot name='r'><link name='a'><visual>{MESH}</visual></link><gazebo>{EVIL}"
    "</gazebo><transmission name='t'><type>evil</type></transmission></robot>",
    "arm.sdf": f"<sdf version='1.9'><model name='m'>{EVIL}<link name='a'><sensor name='s' "
    f"type='camera'>{EVIL}</sensor><visual name='v'><geometry><mesh><uri>evil.stl</uri></mesh>"
    "</geometry></visual></link></model></sdf>",
    "include.sdf": "<sdf version='1.9'><model name='m'><include><uri>arm.sdf</uri></include>"
    "</model></sdf>",
    "arm.toml": 'format = "mechanism"\nname = "${__import__(\'os\')}"\n[[link]]\nname = "a"\n'
    "mass = 1.0\n",
}
FOLLOWED = {"include.sdf": {"include.sdf", "arm.sdf"}}

WATCH = """
import json, os, sys
import chasles
from chasles.formats import mechanism, sdf, urdf
warm, folder = sys.argv[1], sys.argv[2]
chasles.load(warm)
told = []
sys.addaudithook(lambda event, given: told.append((event, str(given[0]) if given else "")))
chasles.load(sys.argv[3])
said = list(told)
names = {os.path.basename(name) for event, name in said if event == "open" and folder in name}
code = {"os.system", "subprocess.Popen", "os.exec", "ctypes.dlopen", "socket.connect"}
ran = {event for event, name in said if event in code}
print(json.dumps([sorted(names), sorted(ran)]))
"""


@pytest.mark.parametrize("name", FILES)
def test_a_file_runs_nothing_and_opens_what_it_includes(name: str, tmp_path: Path) -> None:
    """Plugins, sensors, transmissions and expressions are ignored; meshes are not opened."""
    for other, text in FILES.items():
        (tmp_path / other).write_text(text)
    for other in ("evil.so", "evil.stl"):
        (tmp_path / other).write_text("")
    done = subprocess.run(
        [sys.executable, "-c", WATCH, tmp_path / "arm.urdf", tmp_path, tmp_path / name],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-500:]
    opened, ran = json.loads(done.stdout)
    assert set(opened) == FOLLOWED.get(name, {name})
    assert ran == []


SECRET = "a line of another file"
MJCF = {
    "plugin": "<extension><plugin plugin='evil'/></extension>",
    "instance": "<worldbody><body><geom size='1'/><plugin plugin='evil'/></body></worldbody>",
    "include": "<include file='secret.txt'/>",
    "include_xml": "<include file='secret.xml'/>",
    "mesh": "<asset><mesh file='secret.txt'/></asset>",
    "texture": "<asset><texture type='2d' file='secret.txt'/></asset>",
    "network": "<include file='http://127.0.0.1:9/a.xml'/>",
}


@pytest.mark.parametrize("name", MJCF)
def test_mjcf_loads_no_library_and_shows_no_other_file(name: str, tmp_path: Path) -> None:
    """MuJoCo loads only its own plugins, and included files must be MJCF files."""
    pytest.importorskip("mujoco")
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "secret.xml").write_text(f"<config><key>{SECRET}</key></config>")
    (tmp_path / "arm.xml").write_text(f"<mujoco>{MJCF[name]}</mujoco>")
    with raises("E-MJCF-002", "arm.xml") as caught:
        chasles.load(tmp_path / "arm.xml")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("uri", ["secret.txt", "secret.xml", "/etc/passwd", "https://a.b/c"])
def test_sdf_includes_only_sdf(uri: str, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text(SECRET)
    (tmp_path / "secret.xml").write_text(f"<config><key>{SECRET}</key></config>")
    include = f"<include><uri>{uri}</uri></include>"
    (tmp_path / "arm.sdf").write_text(f"<sdf version='1.9'><model name='m'>{include}</model></sdf>")
    with raises("E-SDF-020|E-SDF-030", "arm.sdf") as caught:
        chasles.load(tmp_path / "arm.sdf")
    assert SECRET not in str(caught.value)
    assert "root:" not in str(caught.value)
