"""Explicit contact pairs and priorities of shapes in MJCF files follow MuJoCo's rules."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import raises

import chasles
from chasles import contact
from chasles.motion.options import Plan
from chasles.motion.simulation import with_file

pytest.importorskip("mujoco")

SCENE = """
<mujoco>
  {option}
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" friction="0.5" priority="{floor}"/>
    <body name="one" pos="0 0 1"><freejoint name="a"/>
      <geom name="ball" size="0.1" friction="0.9" condim="4" {masks}/></body>
    <body name="two" pos="0 0 2"><freejoint name="b"/>
      <geom name="puck" size="0.1" friction="0.2" {masks}/></body>
  </worldbody>
  <contact>{pairs}</contact>
</mujoco>"""


def pairs(folder: Path, **given: str) -> dict[tuple[str, ...], contact.Rigid]:
    """Return the laws of a scene by the names of the frames in contact; '' is the world."""
    usual = {"option": "", "floor": "0", "masks": "", "pairs": ""}
    path = folder / "scene.xml"
    path.write_text(SCENE.format(**usual | given))
    found = contact.file_pairs(chasles.load(path))
    return {tuple(sorted(f or "" for f in pair.frames)): pair.law for pair in found}


def test_a_floating_robot_without_ground_is_told_so() -> None:
    source = chasles.robots.quadruped().model.source
    shapes = tuple(replace(shape, role="collision") for shape in source.shapes[:1])
    robot = chasles.Robot(replace(source, shapes=shapes))
    with pytest.warns(UserWarning, match="no plane"):
        contact.file_pairs(robot)
    assert len(contact.file_pairs(robot, ground=contact.Plane())) == 1
    with pytest.warns(UserWarning, match="no collision shape can touch the ground"):
        contact.file_pairs(chasles.Robot(replace(source, shapes=())), ground=True)
    bare = chasles.Robot(replace(source, shapes=()))
    q = bare.neutral()
    with pytest.warns(UserWarning, match="no plane or fixed shape can touch the robot"):
        bare.simulate(q, np.zeros(bare.nv), dt=0.002, steps=1, contacts="file")


def test_warnings_refer_to_the_line_of_the_user() -> None:
    """The line does not depend on the function through which the pairs are read."""
    source = chasles.robots.quadruped().model.source
    shapes = tuple(replace(x, role="collision", kind="mesh", file="a.obj") for x in source.shapes)
    robot = chasles.Robot(replace(source, shapes=(*shapes[:1], *source.shapes[1:2])))
    q, v = robot.neutral(), np.zeros(robot.nv)
    calls: list[Callable[[], object]] = [
        lambda: contact.file_pairs(robot),
        lambda: robot.simulate(q, v, dt=0.002, steps=1, contacts="file"),
    ]
    for call in calls:
        with pytest.warns(UserWarning, match="contacts from the file") as seen:
            call()
        assert len(seen) == 2
        assert {each.filename for each in seen} == {__file__}
        assert {each.lineno for each in seen} == {call.__code__.co_firstlineno}


def test_a_plane_that_touches_nothing_is_not_a_ground(tmp_path: Path) -> None:
    """Masks may exclude contact between the robot and the plane; a fixed robot needs no ground."""
    text = """<mujoco><worldbody><geom type="plane" size="1 1 1" contype="{}" conaffinity="0"/>
    <body>{}<geom size="0.1" mass="1" contype="0"/></body></worldbody></mujoco>"""

    def found(mask: int, joint: str) -> list[contact.Pair]:
        (tmp_path / "ball.xml").write_text(text.format(mask, joint))
        return contact.file_pairs(chasles.load(tmp_path / "ball.xml"))

    with pytest.warns(UserWarning, match="falls"):
        assert not found(2, "<freejoint/>")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(found(1, "<freejoint/>")) == 1
        assert not found(2, '<joint type="hinge"/>')
        text = text.replace("<worldbody>", "<option gravity='0 0 0'/><worldbody>")
        assert not found(2, "<freejoint/>")


@pytest.mark.filterwarnings("ignore:contacts from the file")
def test_a_pair_touches_whatever_its_masks_with_its_own_friction(tmp_path: Path) -> None:
    masks = 'contype="0" conaffinity="0"'
    assert not pairs(tmp_path, masks=masks)
    own = '<pair geom1="ball" geom2="puck" friction="0.3 0.3 0.01 0.001 0.001" condim="3"/>'
    found = pairs(tmp_path, masks=masks, pairs=own)
    assert [*found] == [("one", "two")]
    assert found["one", "two"] == contact.Rigid(friction=0.3)


def test_a_pair_takes_the_place_of_that_of_the_masks(tmp_path: Path) -> None:
    own = '<pair geom1="puck" geom2="floor" friction="0.7 0.7 0.01 0.001 0.001" condim="3"/>'
    usual, found = pairs(tmp_path), pairs(tmp_path, pairs=own)
    assert {*found} == {*usual}
    changed = [ends for ends in found if found[ends] != usual[ends]]
    assert [found[ends].friction for ends in changed] == [0.7]
    assert usual[changed[0]].friction == 0.5


def test_the_higher_priority_decides_friction(tmp_path: Path) -> None:
    usual, found = pairs(tmp_path), pairs(tmp_path, floor="1")
    on_floor = [ends for ends in usual if "two" not in ends]
    assert [usual[ends].friction for ends in on_floor] == [0.9]
    assert [found[ends] for ends in on_floor] == [contact.Rigid(friction=0.5)]
    assert usual[on_floor[0]].torsion > 0.0


@pytest.mark.filterwarnings("ignore:contacts from the file")
def test_disabled_contact_touches_nothing(tmp_path: Path) -> None:
    assert not pairs(tmp_path, option='<option><flag contact="disable"/></option>')


def test_true_is_the_plane_of_the_world_and_other_grounds_are_refused() -> None:
    source = chasles.robots.quadruped().model.source
    shapes = tuple(replace(shape, role="collision") for shape in source.shapes[:1])
    robot = chasles.Robot(replace(source, shapes=shapes))
    (pair,) = contact.file_pairs(robot, ground=True)
    assert pair.surface == contact.Plane()
    (pair,) = contact.file_pairs(robot, ground=contact.Ground(lambda x, y: 0.1 * x))
    assert isinstance(pair.surface, contact.Ground)
    with raises("E-CONTACT-092"):
        contact.file_pairs(robot, ground=0.0)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:contacts from the file")
def test_pairs_of_the_file_are_simulated_by_time_stepping() -> None:
    """Lists that contain a pair of the file are simulated by time stepping by default.

    Joint limits, damping and dry friction are then included, as for contacts="file". Event-driven
    contact remains the default for other lists.
    """
    source = chasles.robots.quadruped().model.source
    shapes = tuple(replace(shape, role="collision") for shape in source.shapes[:2])
    robot = chasles.Robot(replace(source, shapes=shapes))
    found = contact.file_pairs(robot, ground=True)
    by_hand = contact.Pair(found[0].body, found[0].surface, found[0].law)
    assert by_hand == found[0]
    for pairs, integrator in (
        (found, "time-stepping"),
        (found[:1], "time-stepping"),
        ([by_hand, replace(found[0], shared=2)], "time-stepping"),
        ([by_hand], "rk4"),
        ([], "rk4"),
    ):
        plan, stepped = with_file(robot, Plan(contacts=pairs)), integrator == "time-stepping"
        assert (plan.integrator, plan.limits, plan.dissipation) == (integrator, stepped, stepped)
    plan = with_file(robot, Plan(contacts=found, integrator="dopri5"))
    assert (plan.integrator, plan.limits, plan.dissipation) == ("dopri5", False, False)
    for contacts in (found, "file"):
        plan = with_file(robot, Plan(contacts=contacts, limits=False, dissipation=False))
        assert (plan.limits, plan.dissipation) == (False, False)


def test_the_ground_of_other_functions_is_found() -> None:
    robot, still = chasles.robots.planar(1), [0.0]
    with raises("E-MOTION-090", "ground", "contacts=chasles.contact.file_pairs"):
        robot.simulate(still, still, duration=0.1, ground=True)  # type: ignore[call-arg]
    with raises("E-MOTION-090", "rollout()", "contacts=chasles.contact.file_pairs"):
        robot.rollout(still, still, dt=0.1, steps=1, ground=True)  # type: ignore[call-arg]
    with raises("E-MOTION-090", "rollout_pullback()", "did you mean 'every'?"):
        robot.rollout_pullback(still, still, covectors=(None, None), dt=0.1, steps=1, evry=2)  # type: ignore[call-arg]
    with raises("E-CALL-422", "file_pairs()", "own=False"):
        contact.file_pairs(robot, self_collision=False)  # type: ignore[call-arg]
    with raises("E-MOTION-134", "file_pairs(robot, ground=True)", "integrator='time-stepping'"):
        robot.simulate(still, still, duration=0.1, contacts="ground")


def test_bodies_that_touch_are_those_of_mujoco() -> None:
    """A body has no contact with its parent, even across several joints of one body."""
    gymnasium = pytest.importorskip("gymnasium")
    mujoco = pytest.importorskip("mujoco")
    path = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / "humanoid.xml"
    model = mujoco.MjModel.from_xml_path(str(path))
    model.geom_margin[:] = model.body_margin[:] = (
        100.0  # all pairs of shapes that may touch are contacts
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    bodies = [[int(model.geom_bodyid[g]) for g in each.geom] for each in data.contact]
    expected = {frozenset(model.body(i).name for i in pair) for pair in bodies}
    found = {frozenset(pair.frames) for pair in contact.file_pairs(chasles.load(path))}
    assert found == expected
