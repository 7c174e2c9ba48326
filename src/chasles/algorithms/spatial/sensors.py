"""Sensor values: motion, forces and energies measured on a mechanism.

Definitions follow the corresponding MuJoCo sensors, if any (mujoco.readthedocs.io, "XML Reference",
sensor).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from chasles.algorithms.spatial.kinematics import body_transforms
from chasles.algorithms.spatial.momentum import kinetic_energy
from chasles.algorithms.spatial.orientations import orientation
from chasles.algorithms.spatial.passive import spring_energy
from chasles.algorithms.spatial.tendons import Course, in_world, pulls, tendon_course
from chasles.expr import Number, less, maximum, minimum, select, sqrt
from chasles.mathematics import rays
from chasles.mathematics.linear import Vector
from chasles.mathematics.rotations import conjugate, quaternion_product
from chasles.mathematics.spatial import Force, Motion, RigidInertia, Transform
from chasles.model.build import compose
from chasles.model.loads import Load, by_body
from chasles.model.model import WORLD, Frame, Model
from chasles.model.sensors import SensorData, Surface
from chasles.model.spaces import Loads, Position, SensorNumbers, Velocity
from chasles.model.transmissions import tendons

SHALLOW = 1e-15
"""Smallest depth in front of a camera (m), equal to MuJoCo's mjMINVAL."""


@dataclass(frozen=True)
class Scene:
    """Motion of a mechanism and the forces between its bodies.

    X is the transform from the world to each body. v and a are in body coordinates. f is the force
    that the parent exerts on each body, given the external forces `loads`.
    """

    model: Model
    q: Mapping[int, Vector]
    qd: Mapping[int, Vector]
    X: Mapping[int, Transform]
    v: Mapping[int, Motion]
    a: Mapping[int, Motion]
    f: Mapping[int, Force]
    loads: Sequence[Load]

    def end(self, frame: str, pose: Transform) -> Frame:
        """Return the frame that has the given pose relative to the named frame.

        An empty name denotes the world.
        """
        owner = self.model.frame(frame) if frame else Frame("", WORLD, Transform.identity())
        return Frame(owner.name, owner.body, compose(pose, owner.placement))

    def on(self, sensor: SensorData) -> Frame:
        """Return the frame of a sensor."""
        return self.end(sensor.frame, sensor.pose)

    def seen(self, frame: Frame) -> Transform:
        """Return the transform from the world to a frame."""
        return frame.placement @ self.X[frame.body]

    def joint(self, name: str) -> int:
        """Return the index of the body that a named joint moves."""
        return next(i for i, body in enumerate(self.model.bodies) if body.data.name == name)


def sensor_values(
    model: Model,
    q: Position,
    qd: Velocity,
    qdd: Velocity,
    f_ext: Loads = (),
    *,
    sensors: tuple[SensorData, ...],
) -> SensorNumbers:
    """Return the concatenated sensor values for a motion with external forces."""
    feels = any(sensor.kind in FELT for sensor in sensors)
    loads = (*f_ext, *pulls(model, q, qd)) if feels else f_ext
    scene = _scene(model, q, qd, qdd, loads, by_body(model, loads))
    return [x for sensor in sensors for x in cut(sensor, READINGS[sensor.kind](scene, sensor))]


def _scene(
    model: Model,
    q: Position,
    qd: Velocity,
    qdd: Velocity,
    loads: Sequence[Load],
    f_ext: Mapping[int, Force],
) -> Scene:
    """Compute body motions and transmitted forces (Featherstone 2008, table 5.1)."""
    X, v, a, f = body_transforms(model, q), {WORLD: Motion.zero()}, {WORLD: -model.gravity}, {}
    for i, p, joint, I in model.outward():
        XJ, S = joint.transform(q[i]), joint.subspace(q[i])
        vJ = S @ qd[i]
        v[i] = XJ @ v[p] + vJ
        a[i] = XJ @ a[p] + S @ qdd[i] + joint.bias(q[i], qd[i]) + v[i].cross(vJ)
        f[i] = I @ a[i] + v[i].cross(I @ v[i]) - f_ext[i]
    f[WORLD] = Force.zero()
    for i, p, joint, _ in model.inward():
        f[p] += joint.transform(q[i]).T @ f[i]
    return Scene(model, q, qd, X, v, a, f, loads)


FELT = ("force", "torque", "force_torque")
"""Sensor kinds whose values depend on the spring and damper forces of spatial tendons."""


def cut(sensor: SensorData, values: Iterable[Number]) -> list[Number]:
    """Clip sensor values to the sensor's cutoff."""
    most = sensor.cutoff
    if most <= 0.0 or not sensor.traits.cuts:
        return list(values)
    least = -1e300 if sensor.traits.positive else -most
    return [maximum(least, minimum(most, x)) for x in values]


# Frame sensors ----------------------------------------------------------------------------------


def _velocity(scene: Scene, sensor: SensorData) -> Motion:
    """Return the velocity of the sensor frame, in its own axes."""
    at = scene.on(sensor)
    return at.placement @ scene.v[at.body]


def _acceleration(scene: Scene, sensor: SensorData) -> Motion:
    """Return the sensor's classical acceleration minus gravity, in sensor axes."""
    at = scene.on(sensor)
    v, a = at.placement @ scene.v[at.body], at.placement @ scene.a[at.body]
    return a + Motion(Vector.zero(), v.angular.cross(v.linear))


def _acceleration_in_world(scene: Scene, sensor: SensorData) -> Motion:
    E, a = scene.seen(scene.on(sensor)).E, _acceleration(scene, sensor)
    return Motion(E.T @ a.angular, E.T @ a.linear)


def _relative_velocity(scene: Scene, sensor: SensorData) -> Motion:
    """Return a frame's velocity relative to a reference frame, which may rotate.

    The velocity is expressed in the axes of the reference frame.
    """
    ends = scene.on(sensor), scene.end(sensor.reference, sensor.reference_pose)
    X, R = map(scene.seen, ends)
    v, u = (_in_world(scene, end) for end in ends)
    linear = v.linear - u.linear - u.angular.cross(X.r - R.r)
    return Motion(R.E @ (v.angular - u.angular), R.E @ linear)


def _in_world(scene: Scene, frame: Frame) -> Motion:
    """Return the angular velocity of a frame and the velocity of its origin, in world axes."""
    v, E = frame.placement @ scene.v[frame.body], scene.seen(frame).E
    return Motion(E.T @ v.angular, E.T @ v.linear)


def _position(scene: Scene, sensor: SensorData) -> Vector:
    R = scene.seen(scene.end(sensor.reference, sensor.reference_pose))
    return R.E @ (scene.seen(scene.on(sensor)).r - R.r)


def _axis(k: int) -> Callable[[Scene, SensorData], Vector]:
    def along(scene: Scene, sensor: SensorData) -> Vector:
        R = scene.seen(scene.end(sensor.reference, sensor.reference_pose))
        unit = Vector(tuple(float(i == k) for i in range(3)))
        return R.E @ (scene.seen(scene.on(sensor)).E.T @ unit)

    return along


def _quaternion(scene: Scene, sensor: SensorData) -> Vector:
    """Return the orientation that a sensor measures, as a quaternion whose sign does not jump.

    `sensor.numbers` is a quaternion that determines the sign at the neutral configuration.
    """
    ends = [scene.on(sensor)]
    if sensor.reference:
        ends.append(scene.end(sensor.reference, sensor.reference_pose))
    rest = {i: joint.neutral() for i, _, joint, _ in scene.model.outward()}
    found, before = (
        reduce(
            lambda turn, base: quaternion_product(conjugate(base), turn),
            [orientation(scene.model, q, end) for end in ends],
        )
        for q in (scene.q, rest)
    )
    expected = Vector(sensor.numbers or (1.0, 0.0, 0.0, 0.0))
    return found * (1.0 if float(before.dot(expected)) >= 0.0 else -1.0)


def _magnetic(scene: Scene, sensor: SensorData) -> Vector:
    return scene.seen(scene.on(sensor)).E @ Vector(sensor.numbers)


def _projection(scene: Scene, sensor: SensorData) -> tuple[Number, Number]:
    """Return the pixel coordinates of the sensor in the image of the reference camera.

    The camera looks along its -z axis. As in MuJoCo, depth is kept away from zero, where the
    projection is undefined.
    """
    fx, fy, cx, cy = sensor.numbers
    x, y, z = _position(scene, sensor)
    z = select(less(z, 0.0), minimum(z, -SHALLOW), maximum(z, SHALLOW))
    return cx - fx * (x / z), cy + fy * (y / z)


# Sensors that detect shapes ----------------------------------------------------------------------


def _distance(scene: Scene, ray: rays.Ray, shape: Surface) -> Number:
    X, (p, v) = scene.seen(scene.end(shape.frame, shape.pose)), ray
    return rays.distance((X.E @ (p - X.r), X.E @ v), shape.kind, shape.size, shape.triangles)


def _range(scene: Scene, sensor: SensorData) -> tuple[Number]:
    """Return the distance to the first shape along the sensor's z axis.

    The result is -1 if no shape is in range.
    """
    X = scene.seen(scene.on(sensor))
    ray = (X.r, X.E.T @ Vector.of(0.0, 0.0, 1.0))
    found = reduce(minimum, (_distance(scene, ray, shape) for shape in sensor.seen), rays.FAR)
    (most,) = sensor.numbers or (rays.FAR,)
    return (select(less(found, min(most, rays.FAR)), found, -1.0),)


def _inside(scene: Scene, sensor: SensorData) -> tuple[Number]:
    assert sensor.zone is not None
    X = scene.seen(scene.end(sensor.zone.frame, sensor.zone.pose))
    point = X.E @ (scene.seen(scene.on(sensor)).r - X.r)
    return (rays.is_inside(point, sensor.zone.kind, sensor.zone.size),)


def _touch(scene: Scene, sensor: SensorData) -> tuple[Number]:
    """Sum the normal contact forces on the sensor's link that pass through the touch zone."""
    total: Number = 0.0
    links = _links_of_frames(scene.model)
    for load in scene.loads:
        if load.contact is None or links[load.frame] != links[sensor.frame]:
            continue
        point, force = load.contact
        size = sqrt(_safe(force.dot(force)))
        assert sensor.zone is not None
        met = less(_distance(scene, (point, -force * (1.0 / size)), sensor.zone), rays.FAR)
        total = total + select(met, select(less(0.0, force.dot(force)), size, 0.0), 0.0)
    return (total,)


def _safe(square: Number) -> Number:
    return select(less(0.0, square), square, 1.0)


def _links_of_frames(model: Model) -> dict[str, str]:
    own = {link.name: link.name for link in model.source.links}
    return own | {frame.name: frame.link for frame in model.source.frames}


# Subtree sensors --------------------------------------------------------------------------------


def _carried(model: Model, link: str) -> tuple[list[str], list[int]]:
    """Return a link, all links fixed to it, and the child bodies of the joints on these links."""
    moving = {body.data.name: i for i, body in enumerate(model.bodies)}
    links, bodies = [link], []
    for name in links:
        for joint in model.source.joints:
            if joint.parent == name and joint.name in moving:
                bodies.append(moving[joint.name])
            elif joint.parent == name:
                links.append(joint.child)
    return links, bodies


def _part(model: Model, links: Sequence[str]) -> RigidInertia:
    """Return the total inertia of the given links of one body, in body coordinates."""
    inertias = {link.name: link.inertia for link in model.source.links}
    parts = (model.frames[name].placement.T @ inertias[name] for name in links)
    return reduce(lambda a, b: a + b, parts, RigidInertia.zero())


def _wrench(scene: Scene, sensor: SensorData) -> Force:
    """Return the wrench that the parent link exerts on the sensor's link, at the sensor."""
    model, at = scene.model, scene.on(sensor)
    links, bodies = _carried(model, _links_of_frames(model)[sensor.frame])
    I, v, a = _part(model, links), scene.v[at.body], scene.a[at.body]
    f = I @ a + v.cross(I @ v)
    named = _links_of_frames(model)
    for load in scene.loads:
        if named.get(load.frame) in links:
            f = f - load.f
    for i in bodies:
        f = f + model.bodies[i].joint.transform(scene.q[i]).T @ scene.f[i]
    (sign,) = sensor.numbers or (1.0,)
    return (at.placement @ f) * sign


def _sums(scene: Scene, link: str) -> tuple[Number, Vector, Force]:
    """Return the mass, first moment and momentum of a link's subtree, about the world origin."""
    model, b = scene.model, scene.model.frame(link).body
    links, bodies = _carried(model, link)
    parts = [(b, _part(model, links))]
    parts += [(i, model.bodies[i].inertia) for root in bodies for i in model.subtree(root)]
    m, h, momentum = 0.0, Vector.zero(), Force.zero()
    for i, I in parts:
        X = scene.X[i]
        m, h = m + I.m, h + X.E.T @ I.h + X.r * I.m
        momentum = momentum + X.T @ (I @ scene.v[i])
    return m, h, momentum


def _center(scene: Scene, sensor: SensorData) -> Vector:
    m, h, _ = _sums(scene, sensor.frame)
    return h * (1.0 / m) if m != 0.0 else scene.seen(scene.on(sensor)).r


def _center_velocity(scene: Scene, sensor: SensorData) -> Vector:
    m, _, momentum = _sums(scene, sensor.frame)
    return momentum.force * (1.0 / m) if m != 0.0 else Vector.zero()


def _angular_momentum(scene: Scene, sensor: SensorData) -> Vector:
    """Return the angular momentum of the subtree about its center of mass."""
    _, _, momentum = _sums(scene, sensor.frame)
    return momentum.moment - _center(scene, sensor).cross(momentum.force)


def _potential(scene: Scene, sensor: SensorData) -> tuple[Number]:
    """Return the potential energy: -g . m c of all links, moving or fixed, plus spring energy."""
    model, total = scene.model, Vector.zero()
    for link in model.source.links:
        X = scene.seen(model.frames[link.name])
        total = total + X.E.T @ link.inertia.h + X.r * link.inertia.m
    return (spring_energy(model, scene.q) - model.gravity_vector.dot(total),)


# Joint and tendon sensors ------------------------------------------------------------------------


def _limit(scene: Scene, sensor: SensorData, lower: Number, upper: Number) -> tuple[Number]:
    """Return `lower` near the lower joint limit, `upper` near the upper limit, and 0 elsewhere.

    A position is near a limit if it is beyond the limit or within the sensor's margin of it.
    """
    i = scene.joint(sensor.joint)
    limits, x = scene.model.bodies[i].data.limits, scene.q[i][0]
    (margin,) = sensor.numbers or (0.0,)
    over = select(less(limits.upper - x, margin), upper, 0.0)
    return (select(less(x - limits.lower, margin), lower, over),)


def _limit_position(scene: Scene, sensor: SensorData) -> tuple[Number]:
    i = scene.joint(sensor.joint)
    limits, x = scene.model.bodies[i].data.limits, scene.q[i][0]
    (margin,) = sensor.numbers or (0.0,)
    return _limit(scene, sensor, x - limits.lower - margin, limits.upper - x - margin)


def _limit_velocity(scene: Scene, sensor: SensorData) -> tuple[Number]:
    rate = scene.qd[scene.joint(sensor.joint)][0]
    return _limit(scene, sensor, rate, -rate)


def _joint_quaternion(scene: Scene, sensor: SensorData) -> Vector:
    q = scene.q[scene.joint(sensor.joint)]
    return q * (1.0 / sqrt(q.dot(q)))


def _tendon(scene: Scene, sensor: SensorData) -> Course:
    tendon = next(t for t in tendons(scene.model) if t.data.name == sensor.joint)
    moving = in_world(scene.model.bare(), scene.q, None) if tendon.path else None
    return tendon_course(scene.model, scene.q, tendon, moving)


def _tendon_velocity(scene: Scene, sensor: SensorData) -> tuple[Number]:
    arms = _tendon(scene, sensor).arms
    return (sum((scene.qd[i][k] * arm for (i, k), arm in arms.items()), 0.0),)


Reading = Callable[[Scene, SensorData], Iterable[Number]]

READINGS: dict[str, Reading] = {
    "accelerometer": lambda scene, s: _acceleration(scene, s).linear,
    "gyroscope": lambda scene, s: _velocity(scene, s).angular,
    "velocimeter": lambda scene, s: _velocity(scene, s).linear,
    "magnetometer": _magnetic,
    "force": lambda scene, s: _wrench(scene, s).force,
    "torque": lambda scene, s: _wrench(scene, s).moment,
    "force_torque": lambda scene, s: tuple(_wrench(scene, s)),
    "touch": _touch,
    "range": _range,
    "inside": _inside,
    "camera_projection": _projection,
    "frame_position": _position,
    "frame_quaternion": _quaternion,
    "frame_x_axis": _axis(0),
    "frame_y_axis": _axis(1),
    "frame_z_axis": _axis(2),
    "frame_linear_velocity": lambda scene, s: _relative_velocity(scene, s).linear,
    "frame_angular_velocity": lambda scene, s: _relative_velocity(scene, s).angular,
    "frame_linear_acceleration": lambda scene, s: _acceleration_in_world(scene, s).linear,
    "frame_angular_acceleration": lambda scene, s: _acceleration_in_world(scene, s).angular,
    "subtree_center_of_mass": _center,
    "subtree_linear_velocity": _center_velocity,
    "subtree_angular_momentum": _angular_momentum,
    "joint_position": lambda scene, s: scene.q[scene.joint(s.joint)],
    "joint_velocity": lambda scene, s: scene.qd[scene.joint(s.joint)],
    "joint_quaternion": _joint_quaternion,
    "joint_angular_velocity": lambda scene, s: scene.qd[scene.joint(s.joint)],
    "joint_limit_position": _limit_position,
    "joint_limit_velocity": _limit_velocity,
    "tendon_position": lambda scene, s: (_tendon(scene, s).length,),
    "tendon_velocity": _tendon_velocity,
    "potential_energy": _potential,
    "kinetic_energy": lambda scene, s: (kinetic_energy(scene.model, scene.q, scene.qd),),
}
"""Functions that evaluate sensors, by kind of sensor. Actuator sensors are not included."""
