"""Program of Legnani et al. (1996), part II, fig. 6: kinematics and dynamics of a serial robot.

For each sample, the program computes position, velocity and acceleration matrices of every link in
the base frame, and the action at each joint. Numbers in parentheses refer to the paper's flow
chart. The generalized forces are compared with the compiled `inverse_dynamics`.
"""

import numpy as np

import chasles
from chasles import homogeneous as hm

FORCE, COUPLE = (1.0, 0.0, -2.0), (0.0, 0.1, 0.05)  # N and N m on the gripper, in its frame


def links(arm: chasles.Robot) -> list[tuple[str, hm.Position, hm.Inertia]]:
    """Return the joint type, the position matrix before the joint, and the inertia of each link."""
    found = []
    for joint in map(arm.joint, arm.joints):
        before = hm.from_array(hm.Position, arm.parameter(f"{joint.name}.placement"))
        data = (arm.parameter(f"{joint.child}.{what}") for what in ("mass", "center", "inertia"))
        found.append((joint.kind, before, hm.inertia_from_mass(*data)))
    return found


def kinematics(robot, q, qd, qdd):
    """Yield position M, velocity W, acceleration H and joint screw L of each link (base frame)."""
    M, W, H = hm.Position.identity(), hm.Velocity.zero(), hm.Acceleration.zero()  # (1)
    for (kind, before, _), x, v, a in zip(robot, q, qd, qdd, strict=True):  # (2)
        M = M @ before  # the joint moves about or along z of this frame
        L = hm.change_reference(hm.joint_screw(kind), M)
        W0 = hm.change_reference(hm.joint_velocity(kind, v), M)  # (4), (6)
        H0 = hm.change_reference(hm.joint_acceleration(kind, v, a), M)  # (4), (7)
        M = M @ hm.position_from_extended_dh(0, 0, 0, 0, 0, kind=kind, q=x)  # (3), (5)
        W, H = hm.compose_velocities(W, W0), hm.compose_accelerations(H, W, H0, W0)  # (8), (9)
        yield M, W, H, L


def dynamics(robot, motion, gravity, external):
    """Yield the total action (weight, inertia, load) beyond each joint, last joint first."""
    total = hm.change_reference(external, motion[-1][0])  # (10)
    for (_, _, inertia), (M, _, H, _) in zip(reversed(robot), reversed(motion), strict=True):
        J = hm.change_reference(inertia, M)  # (11)
        total = total + hm.weight(J, gravity) - hm.action(H, J)  # (12), (13)
        yield total


def main(samples: int = 5) -> None:
    arm = chasles.robots.stanford_arm()
    robot, gravity = links(arm), hm.gravity(arm.gravity)
    external = hm.action_from_force(FORCE, COUPLE)
    load = chasles.Wrench([*COUPLE, *FORCE], axes="frame", at="frame")
    rotors = np.array([arm.joint(name).armature for name in arm.joints])
    for t in np.linspace(0.0, 1.0, samples):
        phase = t + np.arange(arm.nv)
        q, qd, qdd = 0.5 + 0.3 * np.sin(phase), 0.3 * np.cos(phase), -0.3 * np.sin(phase)
        motion = list(kinematics(robot, q, qd, qdd))
        actions = list(dynamics(robot, motion, gravity, external))[::-1]
        forces = [-hm.pseudo_product(A, L) for A, (*_, L) in zip(actions, motion, strict=True)]
        compiled = arm.inverse_dynamics(q, qd, qdd, f_ext={"link6": load})
        assert np.allclose(forces + rotors * qdd, compiled, rtol=1e-12, atol=1e-12)
        print(f"t = {t:.2f} s: generalized forces", *(f"{x:8.3f}" for x in forces))


if __name__ == "__main__":
    main()
