"""Sensors of a robot, and their values with optional measurement errors."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from chasles.errors import ArgumentError, InputError
from chasles.mechanisms.given_sensors import checked
from chasles.mechanisms.sensing import ContactForce, chosen, sense, with_errors
from chasles.model.given import a_name
from chasles.model.sensors import SensorData
from chasles.names import suggest
from chasles.robot.editing import Editing
from chasles.robot.identity import Array


class Sensing(Editing):
    """Robot methods for sensors and their values."""

    @property
    def sensors(self) -> tuple[str, ...]:
        """Names of the sensors, in file order."""
        return tuple(sensor.name for sensor in self.model.source.sensors)

    def sensor(self, name: str) -> SensorData:
        """Return the data of a sensor.

        Parameters
        ----------
        name : str
            Name of the sensor.

        Returns
        -------
        SensorData
            Kind, frame or joint, cutoff and noise.

        Raises
        ------
        InputError
            If the sensor does not exist.
        ArgumentError
            If `name` is not a string.

        Examples
        --------
        >>> import chasles
        >>> from chasles.model import SensorData
        >>> robot = chasles.robots.puma560().with_sensors(SensorData("imu", "gyroscope", "tool"))
        >>> robot.sensor("imu").kind
        'gyroscope'
        """
        known = {sensor.name: sensor for sensor in self.model.source.sensors}
        if a_name("a sensor", name, "sensor") not in known:
            problem, part = f"no sensor {name!r}", f"robot {self.name!r}"
            raise InputError("E-SENSE-003", problem, suggest(name, known), part=part)
        return known[name]

    def sense(
        self,
        q: Array,
        qd: Array,
        qdd: Array,
        forces: "Mapping[str, Any] | Sequence[ContactForce] | None" = None,
        *,
        sensors: str | Sequence[str] | None = None,
        ctrl: Array = None,
        act: Array = None,
        multipliers: Array = None,
        t: Any = 0.0,
        noise: "np.random.Generator | int | None" = None,
        threads: int | None = None,
    ) -> dict[str, Any]:
        """Return the sensor values for a motion, as a mapping from name to array (..., size).

        Parameters
        ----------
        q : array_like, shape (..., nq)
            Joint positions (rad or m).
        qd, qdd : array_like, shape (..., nv)
            Joint velocities (rad/s or m/s) and accelerations (rad/s2 or m/s2).
        forces : mapping from str to Wrench, or sequence of ContactForce, optional
            External forces on the robot: wrenches by frame, as in `inverse_dynamics(f_ext=)`, or a
            list of contact forces. Touch sensors measure only contact forces.
        sensors : str or sequence of str, optional
            Names of the sensors to evaluate, in order. Default: all.
        ctrl, act : array_like, shape (..., nu) and (..., na), optional
            Controls and activations of the actuators, as in `actuate`, for actuator sensors.
            Default: zero.
        multipliers : array_like, shape (..., rows), optional
            Multipliers from `constrained_dynamics`, for a robot with loops. If given, force and
            torque sensors include loop-joint forces.
        t : array_like, shape (...), optional
            Time (s), returned by clock sensors.
        noise : Generator or int, optional
            Seed or generator for sensor noise and errors. Default: no errors.
        threads : int, optional
            Number of threads. Default: all for large batches.

        Returns
        -------
        dict
            Values in the order of the sensors. Vectors are in sensor axes, unless the kind of
            sensor defines other axes. `chasles.model.SENSORS` lists sizes and units.

        Raises
        ------
        ArgumentError
            If `forces` is neither a mapping from frames to wrenches nor a sequence of contact
            forces.
        InputError
            If an array has the wrong shape, if leading shapes do not broadcast, or if a sensor in
            `sensors` does not exist.

        Notes
        -----
        Sensors are defined as in MuJoCo. `chasles.compile(robot, "sensor_values")` returns a
        function that evaluates all sensors and concatenates their values.

        Examples
        --------
        >>> import chasles
        >>> import numpy as np
        >>> from chasles.model import SensorData
        >>> imu = SensorData("imu", "accelerometer", "tool")
        >>> robot = chasles.robots.puma560().with_sensors(imu)
        >>> zero = np.zeros(robot.nv)
        >>> (robot.sense(robot.neutral(), zero, zero)["imu"].round(2) + 0.0).tolist()
        [0.0, 0.0, 9.81]
        """
        asked = chosen(self.model, sensors)
        options = {"multipliers": multipliers, "t": t, "threads": threads, "controls": (ctrl, act)}
        values = sense(self.mechanism, (q, qd, qdd), forces, sensors=asked, **options)
        return values if noise is None else with_errors(asked, values, noise)

    def with_sensors(self, *sensors: SensorData) -> Self:
        """Return the robot with additional sensors. Sensors with the same name are replaced.

        Parameters
        ----------
        *sensors : SensorData
            Sensors to add. `SensorData("imu", "gyroscope", "tool")` is a gyroscope on frame "tool".
            `chasles.model.SENSORS` lists all kinds.

        Returns
        -------
        Robot
            Robot with these sensors.

        Raises
        ------
        ArgumentError
            If an argument is not a SensorData object.
        InputError
            If a field of a sensor is not valid, or if a link, joint, tendon or actuator named by a
            sensor does not exist.

        Examples
        --------
        >>> import chasles
        >>> from chasles.model import SensorData
        >>> chasles.robots.puma560().with_sensors(SensorData("imu", "gyroscope", "tool")).sensors
        ('imu',)
        """
        known = {sensor.name: sensor for sensor in self.model.source.sensors}
        for sensor in sensors:
            if not isinstance(sensor, SensorData):
                problem = f"a sensor must be SensorData(...), not {type(sensor).__name__}"
                raise ArgumentError("E-SENSE-004", problem, part="with_sensors")
            made = checked(self.model, sensor)
            known[made.name] = made
        return self._changed(sensors=tuple(known.values()))

    def without_sensors(self, *names: str) -> Self:
        """Return the robot without the named sensors, or without all sensors if no name is given.

        Parameters
        ----------
        *names : str
            Names of the sensors to remove.

        Returns
        -------
        Robot
            Robot without these sensors.

        Raises
        ------
        InputError
            If a sensor in `names` does not exist.
        ArgumentError
            If a name is not a string.

        Examples
        --------
        >>> import chasles
        >>> chasles.robots.planar(2).without_sensors().sensors
        ()
        """
        gone = {self.sensor(name).name for name in names} if names else {*self.sensors}
        kept = tuple(s for s in self.model.source.sensors if s.name not in gone)
        return self._changed(sensors=kept)
