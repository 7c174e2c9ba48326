"""Viewer: drawing and motion, without a browser."""

import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import numpy as np
import pytest
from support import close, raises
from typer.testing import CliRunner

import chasles
from chasles import contact
from chasles.cli import app
from chasles.mathematics.linear import Symmetric, Vector
from chasles.mathematics.spatial import RigidInertia
from chasles.model import WORLD, ShapeData
from chasles.view import panel, posture

pytest.importorskip("viser", reason="the viewer's packages are not installed")
trimesh = pytest.importorskip("trimesh")

from viser.transforms import SO3  # noqa: E402

from chasles.formats.registry import mesh_file  # noqa: E402
from chasles.view import Viewer, record, show, video  # noqa: E402
from chasles.view.graphs import dynamics  # noqa: E402
from chasles.view.pictures import (  # noqa: E402
    durations,
    moving_picture,
    opaque,
    picture,
    writer,
)
from chasles.view.solids import (  # noqa: E402
    MOST_TRIANGLES,
    STICK,
    coarser,
    creased,
    outward,
    solids,
)
from chasles.view.stage import FIELD_OF_VIEW, MARGIN, NEAREST, fitted, ground  # noqa: E402

LOOPS = ("four_bar", "slider_crank", "delta", "stewart")


@pytest.fixture
def viewer() -> Iterator[Viewer]:
    with show(chasles.robots.puma560(), port=0) as made:
        yield made


# Postures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["puma560", "quadruped", *LOOPS])
def test_a_freedom_moves_alone_or_with_those_that_depend_on_it(name: str) -> None:
    robot = getattr(chasles.robots, name)()
    q = posture.start(robot)
    names = [freedom.name for freedom in posture.freedoms(robot)]
    k = names.index(robot.independent[0])
    before = posture.displacement(robot, q)
    after_q = posture.moved(robot, q, k, before[k] + 0.35)
    after = posture.displacement(robot, after_q)
    assert after[k] == pytest.approx(before[k] + 0.35, abs=1e-9)
    free = [n for n in robot.independent if n != names[k]]
    for other in map(names.index, free):
        assert after[other] == pytest.approx(before[other], abs=1e-9)
    if robot.model.loop_rows:
        assert np.abs(robot.loop_residual(after_q)).max() < 1e-9


def test_dragging_far_keeps_the_branch() -> None:
    """A full turn of the crank returns to the start; one large step could change the branch."""
    robot = chasles.robots.four_bar(ground=1.0, crank=0.5, coupler=0.9, rocker=0.8)
    q = posture.start(robot)
    there = posture.moved(robot, q, 0, np.pi)
    back = posture.moved(robot, there, 0, 0.0)
    close(back, q, 1e-9)


def test_start_is_within_limits() -> None:
    robot = chasles.robots.puma560()
    joint = replace(robot.joint("joint1"), limits=chasles.model.Limits(0.5, 1.0))
    others = robot.model.source.joints[1:]
    changed = chasles.Robot(replace(robot.model.source, joints=(joint, *others)))
    assert posture.start(changed)[0] == 0.5


def test_poses_are_those_of_forward_kinematics() -> None:
    robot = chasles.robots.quadruped()
    q = robot.random(seed=3)
    R, p = posture.poses(robot.model, q)
    for i, body in enumerate(robot.model.bodies):
        T = robot.forward_kinematics(q, frame=body.name)
        placement = robot.model.frames[body.name].placement
        close(p[i] + R[i] @ list(placement.r), T[:3, 3], 1e-12)
        close(R[i] @ np.array(placement.R.rows), T[:3, :3], 1e-12)


# Ellipsoids and forces -------------------------------------------------------------------------


def test_box_of_an_inertia_is_the_box_that_has_it() -> None:
    """The moments m/12 (b^2 + c^2) of a box give the side lengths of that box."""
    a, b, c, m = 0.1, 0.4, 0.7, 3.0
    I = Symmetric(*(m / 12 * x for x in (b * b + c * c, a * a + c * c, a * a + b * b)), 0, 0, 0)
    found = posture.of_inertia(RigidInertia.from_center(m, Vector.of(1.0, 2.0, 3.0), I))
    assert found is not None
    close(found.center, [1.0, 2.0, 3.0], 1e-12)
    close(np.abs(found.R) @ posture.box_lengths(found), [a, b, c], 1e-9)


def test_manipulability_of_a_planar_arm() -> None:
    """Yoshikawa 1985: the product of the semi-axes is l1 l2 |sin q2|."""
    robot, q = chasles.robots.planar(2), np.array([0.3, 1.1])
    half = posture.of_manipulability(robot, q, robot.frames[-1]).half
    assert np.sort(half)[1:].prod() == pytest.approx(np.sin(1.1), rel=1e-9)
    assert half.min() < 1e-7


def test_manipulability_with_loops_is_that_of_rates_that_keep_them_closed() -> None:
    robot = chasles.robots.four_bar()
    frame, q = robot.bodies[2], robot.assemble([0.7])
    h = 1e-6
    ends = [robot.forward_kinematics(robot.assemble([0.7 + s], q), frame=frame) for s in (-h, h)]
    speed = np.linalg.norm(ends[1][:3, 3] - ends[0][:3, 3]) / (2 * h)
    assert posture.of_manipulability(robot, q, frame).half.max() == pytest.approx(speed, rel=1e-6)


@pytest.mark.parametrize("name", LOOPS[:2])
def test_the_held_mechanism_stands_still(name: str) -> None:
    robot = getattr(chasles.robots, name)()
    k = [f.name for f in posture.freedoms(robot)].index(robot.independent[0])
    q = posture.moved(robot, posture.start(robot), k, 0.4)
    tau, rest = posture.holding_forces(robot, q), np.zeros(robot.nv)
    qdd, _ = robot.constrained_dynamics(q, rest, tau)
    assert np.abs(qdd).max() < 1e-7


def test_reaction_at_the_base_carries_the_weight() -> None:
    robot = chasles.robots.puma560()
    q = robot.random(seed=1)
    where, found = posture.reaction_vectors(robot, q)
    moving = sum(float(body.inertia.m) for body in robot.model.bodies)
    close(found[0], [0.0, 0.0, 9.81 * moving], 1e-9)
    assert where.shape == found.shape == (6, 3)


def test_gravity_torques_point_along_the_axes() -> None:
    robot = chasles.robots.puma560()
    q = robot.random(seed=1)
    _, torques, push = posture.joint_vectors(robot, q)
    close(np.linalg.norm(torques, axis=1), np.abs(robot.gravity_forces(q)), 1e-9)
    assert np.abs(push).max() == 0.0
    axes = robot.jacobian(q, frame="tool", axes="world", at="frame")[:3].T
    for torque, axis in zip(torques, axes, strict=True):
        assert np.linalg.norm(np.cross(torque, axis)) < 1e-9


# Drawing ---------------------------------------------------------------------------------------


def box(folder: Path) -> Path:
    """Write a mesh file of a box."""
    path = folder / "meshes" / "box.stl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(trimesh.creation.box((2.0, 4.0, 6.0)).export(file_type="stl"))
    return path


def test_meshes_are_found_by_all_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, robot = box(tmp_path / "arm"), str(tmp_path / "arm" / "urdf" / "arm.urdf")
    Path(robot).parent.mkdir()
    for name in (
        "../meshes/box.stl",
        "package://arm/meshes/box.stl",
        "package:///arm/meshes/box.stl",
        f"file://{path}",
        str(path),
    ):
        found = mesh_file(name, robot)
        assert found is not None
        assert found.samefile(path)
    assert mesh_file("package://other/meshes/box.stl", robot) is None
    assert mesh_file("package://arm/meshes/box.stl", "/nowhere/arm.urdf") is None
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "arm"))
    assert mesh_file("package://arm/meshes/box.stl", "/nowhere/arm.urdf") is not None
    secret = tmp_path / "secret.txt"
    secret.write_text("no mesh")
    assert mesh_file(f"file://{secret}", robot) is None


def test_a_mesh_stands_scaled_in_its_link(tmp_path: Path) -> None:
    box(tmp_path)
    robot = chasles.robots.planar(1)
    link = robot.bodies[-1]
    shape = ShapeData(link, "mesh", (0.1, 0.1, 0.1), file="meshes/box.stl")
    source = replace(robot.model.source, shapes=(shape,), where=str(tmp_path / "r.urdf"))
    model = chasles.Robot(source).model
    found, notes = solids(model, 1.0)
    (seen,) = [solid for solid in found if solid.body == model.frames[link].body]
    R = np.array(model.frames[link].placement.R.rows)
    close(np.ptp(seen.vertices @ R, axis=0), [0.2, 0.4, 0.6], 1e-6)
    assert notes == []


def test_what_cannot_be_drawn_is_said_and_drawn_from_inertia(tmp_path: Path) -> None:
    (tmp_path / "bad.stl").write_text("solid of nothing")
    robot = chasles.robots.planar(2)
    shapes = tuple(
        ShapeData(link, "mesh", (1.0, 1.0, 1.0), file=file)
        for link, file in zip(robot.bodies[-2:], ("bad.stl", "no.stl"), strict=True)
    )
    source = replace(robot.model.source, shapes=shapes, where=str(tmp_path / "r.urdf"))
    found, notes = solids(chasles.Robot(source).model, 1.0)
    assert {solid.body for solid in found} >= {0, 1}
    assert [("bad.stl" in note, "no.stl" in note) for note in notes][-1] == (False, True)


def test_missing_meshes_are_one_note_a_package() -> None:
    robot = chasles.robots.planar(3)
    files = ("package://hand/a.stl", "package://hand/b.stl", "c.stl")
    shapes = (
        ShapeData(link, "mesh", (1.0, 1.0, 1.0), file=file)
        for link, file in zip(robot.bodies[-3:], files, strict=True)
    )
    _, notes = solids(chasles.Robot(replace(robot.model.source, shapes=tuple(shapes))).model, 1.0)
    assert notes == [
        "2 meshes are missing or of unknown type: package://hand/a.stl, package://hand/b.stl; "
        "add the folder that contains hand to ROS_PACKAGE_PATH",
        "a mesh is missing or of unknown type: c.stl",
    ]


def test_shapes_for_collision_stand_for_those_that_cannot_be_drawn() -> None:
    robot = chasles.robots.planar(2)
    first, second = robot.bodies[-2:]
    shapes = (
        ShapeData(first, "sphere", (0.1,), role="collision"),
        ShapeData(first, "mesh", (1.0, 1.0, 1.0), file="no.stl"),
        ShapeData(second, "box", (0.1, 0.1, 0.1)),
        ShapeData(second, "sphere", (0.1,), role="collision"),
    )
    model = chasles.Robot(replace(robot.model.source, shapes=shapes)).model
    found, notes = solids(model, 1.0)
    faces = {model.frames[link].body: count for link, count in ((first, 1280), (second, 12))}
    assert {solid.body: len(solid.faces) for solid in found if solid.body in faces} == faces
    assert len(notes) == 1


def test_a_coarser_mesh_keeps_its_place_and_size() -> None:
    ball = trimesh.creation.icosphere(subdivisions=5, radius=1.0)
    vertices, faces = coarser(np.asarray(ball.vertices), np.asarray(ball.faces), 2000)
    assert 500 < len(faces) <= 2000
    assert abs(trimesh.Trimesh(vertices, faces).volume / ball.volume - 1.0) < 0.03
    same = coarser(np.asarray(ball.vertices), np.asarray(ball.faces), 10**6)
    assert len(same[1]) == len(ball.faces)
    assert len(faces) < MOST_TRIANGLES


def test_what_encloses_a_space_faces_outward() -> None:
    """Faces are turned outward even if corners are unshared or one of two parts is inside out."""
    ball = trimesh.creation.icosphere(subdivisions=2)
    loose = np.arange(3 * len(ball.faces)).reshape(-1, 3)
    vertices = ball.triangles.reshape(-1, 3)
    both = np.concatenate([vertices, vertices + np.array([3.0, 0.0, 0.0])])
    given = np.concatenate([loose[:, ::-1], loose + len(vertices)])
    faces = outward(both, given)
    assert faces is not None
    found = trimesh.Trimesh(both, faces, process=False)
    middles = np.where(np.arange(len(faces)) < len(loose), 0.0, 3.0)[:, None] * [1.0, 0.0, 0.0]
    assert np.all(np.sum(found.face_normals * (found.triangles_center - middles), axis=1) > 0.0)


def test_what_has_an_edge_is_seen_from_both_sides() -> None:
    box = trimesh.creation.box()
    assert outward(box.vertices, box.faces[:-1]) is None
    turned = np.concatenate([box.faces[:-1], box.faces[-1:, ::-1]])
    assert outward(box.vertices, turned) is None


# Motions ---------------------------------------------------------------------------------------


def test_motions_of_simulate_and_of_text_files(tmp_path: Path) -> None:
    robot = chasles.robots.planar(2)
    t, q = np.array([0.0, 0.5, 1.0]), np.array([[0.0, 0.0], [1.0, 0.5], [1.0, 1.0]])
    np.savez(tmp_path / "motion.npz", t=t, q=q, format=np.array("chasles-motion-1"))
    names = [f"{joint}.q" for joint in robot.joints]
    rows = [",".join(map(str, [time, *row])) for time, row in zip(t, q, strict=True)]
    (tmp_path / "m.csv").write_text("\n".join([",".join(["t", *names]), *rows]))
    for path in (tmp_path, tmp_path / "motion.npz", tmp_path / "m.csv"):
        motion = panel.read(path, robot)
        close(motion.at(robot, 0.25), [0.5, 0.25], 1e-12)
        close(motion.at(robot, -1.0), q[0], 1e-12)
        close(motion.at(robot, 9.0), q[-1], 1e-12)


def test_a_trajectory_plays() -> None:
    robot = chasles.robots.planar(2)
    move = chasles.trajectory.minimum_jerk([0.0, 0.0], [1.0, -0.5], 1.2)
    with robot.show(motion=move, port=0) as viewer:
        playback = viewer.playback
        assert (playback.first, playback.last) == (0.0, 1.2)
        playback.go(0.6)  # half the distance, by symmetry
        close(viewer.figures[0].q, [0.5, -0.25], 1e-9)
        playback.go(1.2)
        close(viewer.figures[0].q, [1.0, -0.5], 1e-12)


def test_results_of_simulations_play() -> None:
    robot = chasles.robots.planar(2)
    options = {"dt": 0.01, "steps": 20}
    runs = [robot.rollout([0.3, -0.5], np.zeros(2), **options)]
    runs.append(chasles.simulate(robot, [0.3, -0.5], np.zeros(2), duration=0.2, dt=0.01))
    for run in runs:
        with robot.show(motion=run, port=0) as viewer:
            viewer.playback.go(0.1)
            close(viewer.figures[0].q, run.q[10], 1e-12)
            assert viewer.playback.last == pytest.approx(0.2)


def test_motions_of_other_types_are_refused_with_a_remedy() -> None:
    robot = chasles.robots.planar(2)
    for given in ([[0.0, 1.0]], np.zeros((3, 2)), 3.0, robot):
        with raises("E-VIEW-031", type(given).__name__):
            show(robot, motion=given, port=0)  # type: ignore[arg-type]
    run = chasles.simulate(robot, np.zeros((4, 2)), np.zeros((4, 2)), duration=0.02, dt=0.01)
    with raises("E-VIEW-032", "run.q[0]"):
        show(robot, motion=run, port=0)
    assert panel.read(replace(run, q=run.q[0]), robot).q.shape == (3, 2)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"t": np.zeros(2), "q": np.zeros((2, 3))}, "E-FILE-029 m.npz:"),
        (
            {"t": np.zeros(2), "q": np.zeros((2, 9)), "qd": np.zeros((2, 8))},
            "E-FILE-029 floating=True",
        ),
        ({"t": np.array([1.0, 0.0]), "q": np.zeros((2, 2))}, "E-FILE-090 m.npz:"),
        ({"t": np.zeros(1), "q": np.full((1, 2), np.nan)}, "E-FILE-091 m.npz:"),
        ({"t": np.zeros(1)}, "E-FILE-089 m.npz:"),
    ],
)
def test_bad_motion_files(tmp_path: Path, arrays: dict[str, np.ndarray], said: str) -> None:
    path = tmp_path / "m.npz"
    np.savez(path, format=np.array("chasles-motion-1"), **arrays)
    with raises(said):
        panel.read(path, chasles.robots.planar(2))


def test_a_table_with_a_floating_base_needs_a_floating_robot(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("t,root_joint.q0,joint1.q,joint2.q\n0,1,0,0\n")
    with raises("E-FILE-018", "floating=True"):
        panel.read(tmp_path / "m.csv", chasles.robots.planar(2))


def test_a_motion_file_of_another_kind(tmp_path: Path) -> None:
    """NumPy's own message would recommend unsafe loading."""
    (tmp_path / "m.npz").write_bytes(b"\x80\x04.")
    with raises("E-FILE-027"):
        panel.read(tmp_path / "m.npz", chasles.robots.planar(2))


# The server ------------------------------------------------------------------------------------


def test_only_this_machine_can_connect(viewer: Viewer) -> None:
    port = viewer.server.get_port()
    assert re.fullmatch(rf"http://127\.0\.0\.1:{port}/[\w-]{{22}}/", viewer.url)
    socket.create_connection(("127.0.0.1", port), timeout=5).close()
    with pytest.raises(OSError):  # noqa: PT011  refused, with the system's message
        socket.create_connection(("127.0.0.2", port), timeout=1).close()


def test_a_taken_port_leads_to_the_next(viewer: Viewer) -> None:
    taken = viewer.server.get_port()
    with show(chasles.robots.planar(1), port=taken) as second:
        assert second.server.get_port() > taken


def test_a_notebook_shows_the_page(viewer: Viewer) -> None:
    assert f'src="{viewer.url}"' in viewer._repr_html_()


def test_it_prints_as_where_it_is(viewer: Viewer) -> None:
    assert repr(viewer) == f"<Viewer of puma560 at {viewer.url}; stop() ends it>"


SCRIPT = """import chasles
view = chasles.robots.planar(1).show(port=0)
print(view.url, flush=True)
"""


def test_a_script_ends_without_a_word_or_waits() -> None:
    command = [sys.executable, "-c"]
    done = subprocess.run([*command, SCRIPT], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")
    waiting = [*command, SCRIPT + "view.wait()"]
    with subprocess.Popen(waiting, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        port = urlsplit(running.stdout.readline()).port
        assert port
        time.sleep(0.5)
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        running.send_signal(signal.SIGINT)
        rest, _ = running.communicate(timeout=30)
    assert (running.returncode, rest) == (0, "")


def test_in_a_notebook_every_call_shows_a_page_until_the_kernel_ends() -> None:
    """Cells show only the page, and no port stays open."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    nbformat = pytest.importorskip("nbformat")
    first = "import chasles\nrobot = chasles.robots.planar(1)\nrobot.show(port=0)"
    sources = (first, "robot.show(port=0, beside=chasles.robots.four_bar())", LISTEN)
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    *shown, listened = [cell.outputs for cell in notebook.cells]
    assert [len(outputs) for outputs in shown] == [1, 1]
    pages = [re.search(r'<iframe src="http://127.0.0.1:(\d+)/[\w-]+/"', str(o)) for o in shown]
    ports = [int(page[1]) for page in pages if page is not None]
    assert len(set(ports)) == 2
    assert listened[0]["text"] == "200\n200\n"
    for port in ports:
        with pytest.raises(OSError):  # noqa: PT011  refused, with the system's message
            socket.create_connection(("127.0.0.1", port), timeout=1).close()


LISTEN = """from http.client import HTTPConnection
for view in (_, __):
    page = HTTPConnection("127.0.0.1", view.server.get_port(), timeout=30)
    page.request("GET", "/" + view.url.split("/", 3)[3])
    print(page.getresponse().status)
"""


def test_all_ends_with_stop() -> None:
    before = threading.active_count()
    robot = chasles.robots.planar(1)
    made = robot.show(port=0, beside=chasles.robots.four_bar())
    port = made.server.get_port()
    made.stop()
    with pytest.raises(OSError):  # noqa: PT011  refused, with the system's message
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    assert len(made.figures) == 2
    assert not any(thread.name == "chasles playback" for thread in threading.enumerate())
    assert threading.active_count() <= before + 40  # a thread pool of viser may still be ending


def test_bad_arguments() -> None:
    robot = chasles.robots.planar(1)
    with raises("E-VIEW-002"):
        show(robot, beside="puma560")  # type: ignore[arg-type]
    with raises("E-VIEW-003", "65535"):
        show(robot, port=70000)
    with raises("E-VIEW-004"):
        show(robot, host="192.0.2.1")  # an address reserved for documentation
    for file in ("nothing.csv", "nothing.npz"):
        with raises("E-FILE-004", file):
            show(robot, motion=file, port=0)


def test_a_view_starts_from_the_configuration_that_is_given() -> None:
    robot = chasles.robots.planar(2)
    with robot.show([0.3, -0.4], port=0) as made:
        figure, panel = made.figures[0], made.panels[0]
        close(figure.q, [0.3, -0.4], 1e-12)
        assert [slider.value for slider in panel.sliders] == pytest.approx([0.3, -0.4])
        panel.go(np.zeros(2))
        panel.go(figure.start)
        close(figure.q, [0.3, -0.4], 1e-12)
    with raises("E-VIEW-030", "one configuration"):
        show(robot, np.zeros((3, 2)))
    with raises("E-CALL-056"):
        show(robot, [0.1])


def test_graphs_of_a_free_fall_have_no_torque_and_constant_energy() -> None:
    """Derivatives by central differences have errors of the order of the step squared."""
    robot = chasles.robots.planar(2)
    t = np.linspace(0.0, 0.5, 501)
    fall = robot.simulate([0.4, 0.3], [0.0, 0.0], duration=0.5, dt=1e-3)
    found = dynamics(robot, t, fall.q)
    held = np.abs(robot.inverse_dynamics(fall.q[0], np.zeros(2), np.zeros(2))).max()
    assert [curve.label for curve in found.torques] == list(robot.joints)
    for curve in found.torques:
        assert np.abs(curve.values[2:-2]).max() < 1e-3 * held
    kinetic, potential, total = (curve.values for curve in found.energies)
    close(kinetic + potential, total, 1e-12)
    assert np.ptp(total[1:-1]) < 1e-4 * np.ptp(potential)


@pytest.mark.parametrize("kind", ["time-stepping", "impacts", "soft"])
def test_graphs_with_contacts_show_the_commanded_torques(kind: str) -> None:
    """A quadruped lands and bends its legs. The torques of its floating base are zero.

    The errors of time stepping and of finite differences are of first order in the step, so single
    steps in the landing have larger errors than the median.
    """
    robot = chasles.robots.quadruped()
    standing = robot.keyframes["standing"].q
    q = standing.copy()
    q[6] += 0.01

    def command(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        bent = standing[7:] + 0.15 * np.sin(6.0 * t)
        return np.concatenate([np.zeros(6), 60.0 * (bent - q[7:]) - 3.0 * qd[6:]])

    soft = contact.SoftContact(
        contact.HuntCrossley(2e4, 0.5), contact.SoftFriction(2e4, 100.0, 0.8)
    )
    law = soft if kind == "soft" else contact.Rigid(friction=0.8)
    feet = [frame for frame in robot.frames if frame.endswith("foot")]
    pairs = [contact.Pair(contact.Sphere(foot, 0.02), contact.Plane(), law) for foot in feet]
    run = chasles.simulate(
        *(robot, q, np.zeros(18), command),
        contacts=pairs,
        integrator="time-stepping" if kind == "time-stepping" else "rk4",
        dt=2e-4 if kind == "soft" else 1e-3,
        every=5 if kind == "soft" else 1,
        duration=0.2,
        compiled=None,
    )
    motion = panel.read(run, robot)
    efforts = motion.efforts()
    assert efforts is not None
    rows = np.searchsorted(run.t, efforts.t)
    wanted = np.array([command(*state) for state in zip(run.t, run.q, run.qd, strict=True)])
    errors = np.max(np.abs(efforts.tau - wanted[rows]), axis=1)
    known = ~np.isnan(errors)
    assert np.mean(known) > (0.8 if kind == "impacts" else 0.99)
    assert np.median(errors[known]) < 0.05
    assert np.quantile(errors[known], 0.98) < 0.3  # N m, of up to 20
    t = np.linspace(0.0, 0.2, 101)
    q = np.stack([motion.at(robot, each) for each in t])
    drawn = dynamics(robot, t, q, efforts).torques
    assert all(curve.label.startswith(("front", "rear")) for curve in drawn)
    assert max(np.nanmax(np.abs(curve.values)) for curve in drawn) < 30.0
    alone = robot.inverse_dynamics(run.q[-1], run.qd[-1], np.zeros(18))
    assert np.abs(alone).max() > 100.0  # without contact forces


@pytest.mark.parametrize(("every", "known"), [(1, True), (2, False)])
def test_torques_with_contacts_need_the_forces_of_all_steps(every: int, known: bool) -> None:
    robot = chasles.robots.planar(1)
    plane = contact.Plane(point=(0.0, 0.0, -0.5))
    pair = contact.Pair(contact.Sphere("tip", 0.02), plane, contact.Rigid())
    run = robot.simulate(
        [-0.3],
        [0.0],
        contacts=[pair],
        dt=2e-3,
        duration=0.4,
        integrator="time-stepping",
        every=every,
    )
    assert run.touching is not None
    efforts = panel.read(run, robot).efforts()
    assert (efforts is not None) == known
    if efforts is not None:
        assert np.max(run.touching.forces) > 1.0
        assert np.median(np.abs(efforts.tau)) < 1e-3  # N m: no torque is applied


def test_graphs_of_a_simulation_file_show_its_recorded_torques(tmp_path: Path) -> None:
    words = f"simulate puma560 --control gravity --duration 0.2 --no-plots -o {tmp_path / 'run'}"
    assert CliRunner().invoke(app, words.split()).exit_code == 0
    robot = chasles.robots.puma560()
    efforts = panel.read(tmp_path / "run", robot).efforts()
    assert efforts is not None
    with np.load(tmp_path / "run" / "motion.npz") as file:
        np.testing.assert_array_equal(efforts.tau, file["tau"])


def test_graphs_without_contact_forces_say_so_and_omit_the_floating_base(tmp_path: Path) -> None:
    robot = chasles.robots.quadruped()
    q = np.tile(robot.keyframes["standing"].q, (5, 1))
    np.savez(tmp_path / "still.npz", t=np.linspace(0.0, 1.0, 5), q=q, format="chasles-motion-1")
    with show(robot, motion=tmp_path / "still.npz", port=0) as viewer:
        assert viewer.playback is not None
        graphs = viewer.playback.graphs
        graphs.show(True)
        torque, energy = (plot.title for plot, _, _ in graphs.plots)
        assert torque.startswith("Joint torques without contact forces, N")
        assert energy == "Energy, J"
        torques = graphs.plots[0][2]
    assert len(torques) == 8
    assert all(curve.label.startswith(("front", "rear")) for curve in torques)
    free = chasles.simulate(robot, q[0], np.zeros(18), duration=0.01)
    efforts = panel.read(free, robot).efforts()
    assert efforts is not None, "without contacts, the torques are known"


@pytest.mark.parametrize("name", ["puma560", "stanford_arm", "microbot", "quadruped", "humanoid"])
def test_built_in_robots_have_bodies_that_hang_together(name: str) -> None:
    """Each body is drawn as shapes, and the bounding boxes of neighbors overlap."""
    robot = chasles.robots.ROBOTS[name]()
    model = robot.model
    drawn, _ = solids(model, 1.0)
    assert {solid.link for solid in drawn} <= {shape.link for shape in model.source.shapes}
    R, p = posture.poses(model, posture.start(robot))
    boxes = {}
    for i in {solid.body for solid in drawn}:
        points = np.concatenate([solid.vertices for solid in drawn if solid.body == i])
        points = points if i < 0 else points @ R[i].T + p[i]
        boxes[i] = points.min(axis=0), points.max(axis=0)
    for i, body in enumerate(model.bodies):
        if body.parent in boxes:
            (low, high), (least, greatest) = boxes[i], boxes[body.parent]
            assert np.all(low < greatest + 1e-3)
            assert np.all(least < high + 1e-3)


def test_the_command_says_where_and_ends_by_an_interrupt() -> None:
    command = [sys.executable, "-m", "chasles", "view", "planar:2", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        line = running.stdout.readline()
        found = re.fullmatch(
            r"planar is at http://127\.0\.0\.1:(\d+)/[\w-]+/ \(press Ctrl-C to stop\)\n", line
        )
        assert found, line
        socket.create_connection(("127.0.0.1", int(found[1])), timeout=5).close()
        running.send_signal(signal.SIGINT)
        rest, _ = running.communicate(timeout=30)
    assert (running.returncode, rest) == (0, "")


def test_the_command_says_what_is_wrong_in_one_line() -> None:
    result = CliRunner().invoke(app, ["view", "puma560", "--motion", "nothing.csv"])
    assert result.exit_code == 2
    assert "nothing.csv: the file does not exist" in result.output


# Stage --------------------------------------------------------------------------------------------


def test_recordings_begin_with_the_robot_in_the_middle(viewer: Viewer) -> None:
    """Pages start next to their panel, and slow pages use this first camera for recordings, too."""
    camera, stage = viewer.server.initial_camera, viewer.stage
    before = camera.look_at
    with stage.recording((640, 480), shadows=True):
        x, y = image(stage.points, camera.position, camera.look_at, 640 / 480)
        assert abs(x.max() + x.min()) < 1e-4
        assert abs(y.max() + y.min()) < 1e-4
        assert not np.allclose(camera.look_at, before)
        assert stage.sun.cast_shadow
    np.testing.assert_allclose(camera.look_at, before)
    assert not stage.sun.cast_shadow


def test_recordings_state_their_camera(viewer: Viewer) -> None:
    """The camera that a loading page reports can be an intermediate one."""
    stage, asked = viewer.stage, []

    def render(height: int, width: int, **options: object) -> np.ndarray:
        asked.append(options)
        return np.zeros((height, width, 3), dtype=np.uint8)

    client = SimpleNamespace(get_render=render, flush=lambda: None)
    with stage.recording((640, 480), shadows=True):
        camera = stage.server.initial_camera
        moving_picture(client, 64, 48, view=stage.view)
        x, y, z = SO3(stage.view.wxyz).as_matrix().T
        ahead = camera.look_at - camera.position
        np.testing.assert_allclose(z, ahead / np.linalg.norm(ahead))
        assert x @ stage.up == pytest.approx(0.0, abs=1e-12)
        assert y @ stage.up < 0.0
        assert all(each["position"] is stage.view.position for each in asked)
    assert stage.view is None
    assert len(asked) == 2
    picture(client, 64, 48)
    assert "position" not in asked[-1]


def test_sliders_near_zero_do_not_read_minus_zero(viewer: Viewer) -> None:
    viewer.panels[0].go(np.array([-1e-9, -0.1, 1e-9, 0.0, -1e-6, -0.2]))
    values = [slider.value for slider in viewer.panels[0].sliders]
    assert values == [0.0, -0.1, 0.0, 0.0, 0.0, -0.2]
    assert not any(np.signbit(values[k]) for k in (0, 2, 3, 4))


def test_shapes_cast_shadows_but_receive_none(viewer: Viewer) -> None:
    """Shadow maps with texels of millimeters darken thin parts and open meshes by stripes."""
    nodes = [node for node, _ in viewer.figures[0].shapes]
    assert nodes
    assert all(node.cast_shadow for node in nodes)
    assert not any(node.receive_shadow for node in nodes)


def test_images_with_a_transparent_sky_become_opaque() -> None:
    drawn = np.array([[[10, 20, 30, 255], [10, 20, 30, 0], [55, 155, 255, 51]]], dtype=np.uint8)
    np.testing.assert_array_equal(opaque(drawn), [[[10, 20, 30], [255, 255, 255], [215, 235, 255]]])
    np.testing.assert_array_equal(opaque(drawn[..., :3]), drawn[..., :3])


@pytest.mark.parametrize("rate", [12.0, 30.0, 60.0])
def test_a_gif_lasts_as_long_as_its_motion(tmp_path: Path, rate: float) -> None:
    """Frame durations are whole hundredths of a second, but their sum is right to 5 ms."""
    from PIL import Image

    count = round(rate)
    with writer(tmp_path / "motion.gif", ".gif", rate, (16, 16)) as add:
        for k in range(count):
            add(np.full((16, 16, 3), 4 * k, dtype=np.uint8))
    stored = []
    with Image.open(tmp_path / "motion.gif") as image:
        for k in range(count):
            image.seek(k)
            stored.append(image.info["duration"])
    assert stored == durations(count, rate)
    assert sum(stored) == 1000
    assert np.abs(np.cumsum(stored) - 1000.0 * np.arange(1, count + 1) / rate).max() <= 5.0


def test_a_page_that_returns_to_its_first_camera_is_fitted_again(viewer: Viewer) -> None:
    """A slow page applies its first camera after the fitted one; a camera the user moved stays."""
    fitted_again = []
    stage = viewer.stage
    stage.fit = fitted_again.append  # type: ignore[method-assign]
    first = viewer.server.initial_camera.position
    for place in (first, first + np.array([0.1, 0.0, 0.0]), first * (1.0 + 1e-6)):
        stage._refit(SimpleNamespace(position=place, client="page"))
    assert fitted_again == ["page"]  # a page is fitted again only once


def test_pictures_do_not_depend_on_images_that_load_later(viewer: Viewer) -> None:
    """A page decodes an environment map at some later time, which changes the brightness."""
    messages = viewer.server._websock_server._broadcast_buffer.message_from_id.values()
    maps = [each for each in messages if type(each).__name__ == "EnvironmentMapMessage"]
    assert [each.hdri_data for each in maps] == [None]
    viewer.stage.shadows(True)
    maps = [each for each in messages if type(each).__name__ == "EnvironmentMapMessage"]
    assert {each.hdri_data for each in maps} == {None}


def test_black_parts_are_not_drawn_black(viewer: Viewer) -> None:
    figure = viewer.figures[0]
    black, white = (figure._drawn[0]._replace(color=(x, x, x, 1.0)) for x in (0.0, 1.0))
    assert [node.color for node in figure.add("test", [black, white])] == [(38,) * 3, (255,) * 3]


@pytest.mark.parametrize("name", ["stewart", "delta"])
def test_free_joints_are_not_drawn(name: str) -> None:
    """The free joint of the platform is virtual: no rod leads from the base to the platform."""
    robot = getattr(chasles.robots, name)()
    model = robot.model
    (platform,) = (i for i, body in enumerate(model.bodies) if body.joint.nv == 6)
    away = np.array(list(model.bodies[platform].joint.placement.r), dtype=float)
    drawn, _ = solids(model, 1.0)
    base = np.concatenate([solid.vertices for solid in drawn if solid.body == WORLD])
    assert np.linalg.norm(base - away, axis=1).min() > 0.3
    rods = [solid for solid in drawn if solid.body == platform and solid.color == STICK]
    assert all(np.linalg.norm(rod.vertices, axis=1).max() > 0.1 for rod in rods)


def test_a_robot_starts_in_its_home_keyframe() -> None:
    """The boom of the Stanford arm is above its base, which stands on the floor."""
    robot = chasles.robots.stanford_arm()
    close(posture.start(robot), robot.keyframes["home"].q, 0.0)
    assert robot.within(posture.start(robot))
    with show(robot, port=0) as viewer:
        base = np.concatenate([x.vertices for x in viewer.figures[0]._drawn if x.body == WORLD])
        assert viewer.stage.floor.position[2] == pytest.approx(base[:, 2].min())


def test_a_clicked_link_is_described_with_its_frame(viewer: Viewer) -> None:
    robot, panel = viewer.figures[0].whole, viewer.panels[0]
    panel._select("link3")
    q = robot.neutral() + 0.3
    for at in (viewer.figures[0].q, q):
        panel.go(at)
        place = robot.forward_kinematics(at, frame="link3")[:3, 3].round(6) + 0.0
        text = "({:.4g}, {:.4g}, {:.4g}) m".format(*place)
        assert f"Frame link3: origin at {text}" in panel.message.value
    assert panel.message.value.startswith("Link link3: ")


def test_number_fields_have_four_decimal_places_or_more(viewer: Viewer) -> None:
    assert {slider.precision for slider in viewer.panels[0].sliders} == {4}
    fine = panel._slider(viewer.server, "fine", (0.0, 1e-3), 0.0)
    assert fine.precision == 6


def test_long_labels_are_shortened_with_the_full_label_as_a_hint() -> None:
    with show(chasles.robots.quadruped(), port=0) as viewer:
        found = {slider.label: slider.hint for slider in viewer.panels[0].sliders}
    assert len(found) == 18
    assert found["front_le\N{HORIZONTAL ELLIPSIS}hip, rad"] == "front_left_hip, rad"
    assert max(map(len, found)) == panel.LONGEST
    with show(chasles.robots.planar(1), port=0) as viewer:
        (slider,) = viewer.panels[0].sliders
        assert (slider.label, slider.hint) == ("joint1, rad", None)


def test_a_page_without_a_motion_says_how_to_show_one(viewer: Viewer) -> None:
    inputs = viewer.server.gui._gui_input_handle_from_uuid.values()
    (note,) = (each for each in inputs if getattr(each, "label", "") == "Note")
    assert "robot.show(motion=...)" in note.value


def test_the_camera_is_fitted_to_the_whole_motion() -> None:
    """The robot falls; another robot, which does not follow the motion, remains in place."""
    robot, other = chasles.robots.quadruped(), chasles.robots.planar(1)
    q, qd = posture.start(robot), np.zeros(robot.nv)
    run = chasles.simulate(robot, q, qd, duration=1.0, integrator="euler", dt=0.1)
    drop = robot.center_of_mass(run.q[-1]) - robot.center_of_mass(run.q[0])
    assert drop[2] < -4.0
    with show(robot, beside=other, motion=run, port=0) as viewer:
        first, still = viewer.figures
        both = np.concatenate([first.bounds, first.bounds + drop, still.bounds])
        found = viewer.stage.points
        close(found.max(axis=0), both.max(axis=0), 1e-9)
        close(found.min(axis=0), both.min(axis=0), 1e-9)


def test_a_posture_is_recorded_as_a_picture_only(
    viewer: Viewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert video.STILL in video.SUFFIXES
    monkeypatch.setattr(video, "check_video", lambda path, overwrite: Path(path))
    with raises("E-VIEW-022", "pass `motion`, or save a picture with a file name ending in .png"):
        record(viewer, "film.mp4")


@pytest.mark.parametrize(("aspect", "covered"), [(1.6, 0.27), (0.6, 0.0), (3.0, 0.1)])
def test_a_fitted_camera_has_all_points_in_the_free_part_of_its_picture(
    aspect: float, covered: float
) -> None:
    """Images range from -1 to 1, or to 1 - 2 * covered if a panel covers a part."""
    points = np.random.default_rng(7).normal(size=(40, 3)) * [1.0, 0.2, 2.0] + [3.0, -1.0, 0.5]
    up = np.array([0.0, 0.0, 1.0])
    position, look_at = fitted(points, np.array([1.0, 0.5, 0.4]), up, aspect, covered)
    x, y = image(points, position, look_at, aspect)
    assert np.abs(y).max() < 1.0
    assert x.min() > -1.0
    assert x.max() < 1.0 - 2.0 * covered
    filled = (np.ptp(x) / (2.0 - 2.0 * covered), np.ptp(y) / 2.0)
    assert max(filled) == pytest.approx(
        MARGIN, rel=1e-4
    )  # the camera is no farther away than necessary
    middle = 0.5 * (x.max() + x.min()), 0.5 * (y.max() + y.min())
    assert middle == pytest.approx((-covered, 0.0), abs=1e-4)


def test_a_fitted_camera_keeps_its_distance_from_a_robot_that_extends_toward_it() -> None:
    ahead, up = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
    points = np.array([[0.0, -0.01, 0.0], [0.0, 0.01, 0.05], [1.0, 0.0, 0.0]])
    position, look_at = fitted(points, ahead, up, 1.5)
    diagonal = np.linalg.norm([1.0, 0.02, 0.05])
    assert np.linalg.norm(position - look_at) == pytest.approx(NEAREST * diagonal)


def image(
    points: np.ndarray, position: np.ndarray, look_at: np.ndarray, aspect: float
) -> np.ndarray:
    """Return the image coordinates (2, n), from -1 to 1, of points in front of a camera."""
    ahead = (look_at - position) / np.linalg.norm(look_at - position)
    right = np.cross(ahead, [0.0, 0.0, 1.0]) / np.linalg.norm(np.cross(ahead, [0.0, 0.0, 1.0]))
    depth = (points - position) @ ahead
    assert depth.min() > 0.0
    tall = depth * np.tan(0.5 * FIELD_OF_VIEW)
    x, y = (points - position) @ right, (points - position) @ np.cross(right, ahead)
    return np.array([x / (tall * aspect), y / tall])


def test_sharp_edges_are_split_and_round_surfaces_are_not() -> None:
    box, ball = trimesh.creation.box((1.0, 2.0, 3.0)), trimesh.creation.icosphere(subdivisions=3)
    vertices, faces = creased(box.vertices, box.faces)
    assert len(vertices) == 24  # four corners per side
    np.testing.assert_allclose(vertices[faces], box.vertices[box.faces])
    scattered = ball.vertices[ball.faces].reshape(-1, 3)
    vertices, faces = creased(scattered, np.arange(len(scattered)).reshape(-1, 3))
    assert len(vertices) == len(ball.vertices)
    np.testing.assert_allclose(vertices[faces], ball.vertices[ball.faces])


def test_too_many_triangles_are_simplified_with_a_note(tmp_path: Path) -> None:
    ball = trimesh.creation.icosphere(subdivisions=4)
    ball.export(tmp_path / "ball.stl")
    robot = chasles.robots.planar(1)
    shape = ShapeData(robot.bodies[-1], "mesh", (0.1, 0.1, 0.1), file="ball.stl")
    source = replace(robot.model.source, shapes=(shape,), where=str(tmp_path / "r.urdf"))
    model = chasles.Robot(source).model
    whole, notes = solids(model, 1.0)
    assert notes == []
    assert max(len(solid.faces) for solid in whole) == len(ball.faces)
    fewer, notes = solids(model, 1.0, 1000)
    assert notes == ["the meshes have 5,120 triangles, of which about 1,000 are drawn"]
    assert max(len(solid.faces) for solid in fewer) <= 1000
    with raises("E-VIEW-029"):
        show(robot, triangles=0)


def test_the_floor_is_the_plane_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "ball.xml"
    file.write_text(
        """<mujoco><worldbody><geom type="plane" size="1 1 1" pos="0 0 -0.4"/>
        <body pos="0 0 1"><joint/><geom size="0.1"/></body></worldbody></mujoco>"""
    )
    robot = chasles.load(file)
    assert ground(robot, np.array([0.0, 0.0, 1.0])) == pytest.approx(-0.4)
    assert ground(robot, np.array([0.0, 1.0, 0.0])) is None
    assert ground(chasles.robots.puma560(), np.array([0.0, 0.0, 1.0])) is None


def test_the_floor_is_the_contact_plane_of_a_simulation() -> None:
    """The highest horizontal plane is the floor, even if the motion does not reach it."""
    up = np.array([0.0, 0.0, 1.0])
    robot = chasles.robots.planar(1)
    law = contact.SoftContact(contact.HuntCrossley(stiffness=1e4, damping=1.0))
    floors = (
        contact.Plane(point=(0.3, 0.0, -1.7), normal=(0.0, 0.0, 2.0)),
        contact.Plane(point=(0.0, 0.0, -1.9)),
        contact.Plane(point=(0.0, 0.0, -1.5), normal=(1.0, 0.0, 1.0)),
    )
    pairs = [contact.Pair(contact.Point("tip"), each, law) for each in floors]
    run = robot.simulate([0.0], [0.0], contacts=pairs, dt=1e-3, duration=0.01)
    with show(robot, motion=run, port=0) as viewer:
        assert viewer.stage.floor.position == pytest.approx([0.0, 0.0, -1.7])
    assert ground(robot, up, panel.read(run, robot).planes) == pytest.approx(-1.7)
    assert ground(robot, -up, panel.read(run, robot).planes) is None


def test_the_floor_is_the_ground_of_a_simulation_file(tmp_path: Path) -> None:
    """A quadruped in the air does not stand on the floor."""
    words = ["simulate", "quadruped", "--q", "floating_base=1,0,0,0,0,0,0.9", "--no-plots"]
    words += ["--ground", "rigid,friction=0.8", "--duration", "0.01", "-o", str(tmp_path / "run")]
    assert CliRunner().invoke(app, words).exit_code == 0
    legged = chasles.robots.quadruped()
    with show(legged, motion=tmp_path / "run", port=0) as viewer:
        assert viewer.stage.floor.position == pytest.approx([0.0, 0.0, 0.0])


def test_contact_forces_of_a_simulation_stand_at_their_points(tmp_path: Path) -> None:
    """A ball on the ground has one arrow at its lowest point, as long as its weight."""
    from chasles.view.overlays import WEIGHT, ContactForces

    file = tmp_path / "ball.xml"
    file.write_text(
        '<mujoco model="ball"><worldbody><geom type="plane" size="1 1 0.1"/>'
        '<body name="ball" pos="0.3 0 0.1"><freejoint name="free"/>'
        '<geom type="sphere" size="0.1" mass="1"/></body></worldbody></mujoco>'
    )
    words = f"simulate {file} --dt 0.002 --duration 0.2 --no-plots -o {tmp_path / 'run'}"
    assert CliRunner().invoke(app, words.split()).exit_code == 0
    robot = chasles.load(file)
    motion = panel.read(tmp_path / "run", robot)
    where, forces = motion.felt(0.2)
    np.testing.assert_allclose(where, [[0.3, 0.0, 0.0]], atol=1e-6)
    np.testing.assert_allclose(forces, [[0.0, 0.0, 9.81]], atol=1e-3)
    with show(robot, motion=tmp_path / "run", port=0) as viewer:
        (arrows,) = [o for o in viewer.figures[0].overlays if isinstance(o, ContactForces)]
        assert arrows.wanted
        assert viewer.playback is not None
        viewer.playback.go(0.2)
        (drawn,) = arrows.nodes[0].points
        np.testing.assert_allclose(drawn[0], [0.3, 0.0, 0.0], atol=1e-6)
        length = float(np.linalg.norm(drawn[1] - drawn[0]))
        np.testing.assert_allclose(length, WEIGHT * viewer.figures[0].size, rtol=1e-3)
        assert "total (" in arrows.said
    run = robot.simulate(robot.neutral(), np.zeros(6), contacts="file", dt=0.002, duration=0.2)
    where, forces = panel.read(run, robot).felt(0.2)
    np.testing.assert_allclose(where, [[0.3, 0.0, 0.0]], atol=1e-6)
    np.testing.assert_allclose(forces, [[0.0, 0.0, 9.81]], atol=1e-3)


@pytest.mark.parametrize("integrator", ["rk4", "dopri5"])
def test_contact_forces_on_soft_ground_are_drawn(integrator: str) -> None:
    """Contact forces of compiled and interpreted simulations are drawn at the contact point."""
    robot = chasles.robots.planar(1)
    law = contact.SoftContact(contact.HuntCrossley(stiffness=1e4, damping=1.0))
    ground = contact.Plane(point=(0.0, 0.0, -0.5))
    pairs = [contact.Pair(contact.Point("tip"), ground, law)]
    run = robot.simulate(
        [-0.5], [0.0], contacts=pairs, dt=1e-3, duration=0.3, integrator=integrator
    )
    assert run.touching is not None
    where, forces = panel.read(run, robot).felt(0.3)
    tip = robot.forward_kinematics(run.q[-1], frame="tip")[:3, 3]
    np.testing.assert_allclose(where, [tip], rtol=0.0, atol=1e-12)
    np.testing.assert_array_equal(forces, run.touching.forces[-1])
    assert forces[0, 2] > 0.0
