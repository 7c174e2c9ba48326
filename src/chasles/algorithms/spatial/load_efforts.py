"""What external forces do for the joints, and how that changes when the joints move."""

from chasles.mathematics.linear import Matrix
from chasles.mathematics.spatial import Forces, Motions, Transform
from chasles.model.model import Model
from chasles.model.spaces import Effort, JointMatrix, Loads, Position


def load_efforts(model: Model, q: Position, loads: Loads) -> tuple[Effort, JointMatrix]:
    """J'F of every joint, and its derivative with respect to q, along `integrate`.

    J are the joints' subspaces in the frame of the body that a force f acts on. When joint j moves
    that body by J_j, f changes as its `Load` says, and the subspaces of the joints before j, seen
    from the body, go the other way: -(J_j x J_i).f is J_i.(J_j x f).
    """
    rest, tau = model.at_rest(), model.at_rest()
    K: dict[tuple[int, int], Matrix] = {}

    def add(i: int, j: int, block: Matrix) -> None:
        K[i, j] = K[i, j] + block if (i, j) in K else block

    for load in loads:
        X, f, beyond = Transform.identity(), load.f, list[tuple[int, Motions]]()
        for i in model.support(load.body):
            joint = model.bodies[i].joint
            J = X @ joint.subspace(q[i])
            slopes = joint.slopes(q[i], rest[i], rest[i]).subspace
            tau[i] += J.T @ f
            changes = Forces(tuple(load.change(d) for d in J.columns))
            add(i, i, J.T @ changes + Matrix(tuple(tuple((X @ dS).T @ f) for dS in slopes)).T)
            for j, Jj in beyond:
                stay = tuple(load.change(d) + d.cross(f) for d in Jj.columns)
                add(i, j, J.T @ Forces(stay))
                add(j, i, Jj.T @ changes)
            beyond.append((i, J))
            X = X @ joint.transform(q[i])
    return tau, K
