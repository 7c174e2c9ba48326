"""Sensors of SDF files and of `<gazebo>` elements in URDF files."""

from pathlib import Path

import numpy as np
import pytest

import chasles

SENSORS = """
<sensor name="imu" type="imu"><pose>0.1 0 0.2 0 0 1.5707963267948966</pose><imu>
<angular_velocity><x><noise type="gaussian"><mean>0.1</mean><stddev>0.02</stddev>
<bias_mean>0.3</bias_mean><bias_stddev>0.04</bias_stddev>
<dynamic_bias_stddev>0.05</dynamic_bias_stddev>
<dynamic_bias_correlation_time>40</dynamic_bias_correlation_time></noise></x></angular_velocity>
</imu></sensor>
<sensor name="scan" type="ray"><ray><scan><horizontal><samples>3</samples>
<min_angle>-0.5</min_angle><max_angle>0.5</max_angle></horizontal></scan>
<range><min>0.1</min><max>5</max></range></ray></sensor>
<sensor name="eye" type="camera"/>"""

FORCE = """<sensor name="wrist" type="force_torque"><force_torque>
<measure_direction>parent_to_child</measure_direction></force_torque></sensor>"""

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
URDF = f"""<robot name="r"><link name="base"/><link name="arm">{INERTIAL}</link>
<joint name="turn" type="continuous"><parent link="base"/><child link="arm"/>
<origin xyz="0 0 1"/><axis xyz="0 0 1"/></joint>
<link name="wall"><collision><geometry><box size="0.2 4 4"/></geometry></collision></link>
<joint name="hold" type="fixed"><parent link="base"/><child link="wall"/><origin xyz="2 0 0"/>
</joint>
<gazebo reference="arm"><mu1>0.2</mu1></gazebo><gazebo reference="arm">{SENSORS}</gazebo>
<gazebo reference="turn">{FORCE}</gazebo></robot>"""

SDF = f"""<sdf version="1.9"><model name="r"><link name="base"/><link name="arm">
<pose>0 0 1 0 0 0</pose>{SENSORS}</link>
<joint name="fix" type="fixed"><parent>world</parent><child>base</child></joint>
<joint name="turn" type="revolute"><parent>base</parent><child>arm</child>
<axis><xyz>0 0 1</xyz></axis>{FORCE}</joint>
<link name="wall"><pose>2 0 0 0 0 0</pose><collision name="c"><geometry><box><size>0.2 4 4</size>
</box></geometry></collision></link>
<joint name="hold" type="fixed"><parent>world</parent><child>wall</child></joint></model></sdf>"""


@pytest.fixture(params=["urdf", "sdf"])
def robot(request: pytest.FixtureRequest, tmp_path: Path) -> chasles.Robot:
    path = tmp_path / f"r.{request.param}"
    path.write_text({"urdf": URDF, "sdf": SDF}[request.param])
    return chasles.load(path)


def test_names_and_what_is_left_out(robot: chasles.Robot) -> None:
    imu = [f"imu.{x}" for x in ("orientation", "angular_velocity", "linear_acceleration")]
    assert robot.sensors == (*imu, "scan[0]", "scan[1]", "scan[2]", "wrist")
    [note] = [note for note in robot.notes if "'eye'" in note]
    assert "type 'camera' is ignored" in note


def test_noise_is_that_of_the_file(robot: chasles.Robot) -> None:
    noise = robot.sensor("imu.angular_velocity").noise
    assert (noise.deviation, noise.offset, noise.bias) == (0.02, (0.4,), 0.04)
    assert (noise.drift, noise.correlation_time) == (0.05, 40.0)
    assert robot.sensor("imu.linear_acceleration").noise == chasles.model.NoiseData()


def test_values_in_a_known_motion(robot: chasles.Robot) -> None:
    """Readings at 2 rad/s: centripetal acceleration at a radius of 0.1 m, and a wall at 1.9 m."""
    found = robot.sense([0.0], [2.0], [0.0])
    assert np.allclose(found["imu.angular_velocity"], [0.0, 0.0, 2.0])
    assert np.allclose(found["imu.linear_acceleration"], [0.0, 0.1 * 4.0, 9.81], atol=1e-12)
    half = np.sqrt(0.5)
    assert np.allclose(found["imu.orientation"], [half, 0.0, 0.0, half])
    ranges = np.concatenate([found[f"scan[{k}]"] for k in range(3)])
    assert np.allclose(ranges, [1.9 / np.cos(0.5), 1.9, 1.9 / np.cos(0.5)])
    behind = robot.sense([np.pi], [0.0], [0.0])
    assert behind["scan[1]"] == -1.0
    assert np.allclose(found["wrist"][3:], [0.0, 0.0, 9.81])
