"""How the joints feel external forces that stay behind when the joints move."""

from chasles.mathematics.linear import Matrix
from chasles.mathematics.spatial import Forces, Transform
from chasles.model.model import Model
from chasles.model.spaces import JointMatrix, Loads, Position


def load_slopes(model: Model, q: Position, loads: Loads) -> JointMatrix:
    """J' dF/dq of joint forces J'F, where F, in body coordinates, changes as each load says.

    The other part, dJ'/dq F, is that of forces fixed in their bodies, which a recursion over all
    forces has already. J are the joints' subspaces in the frame of the body that the load acts on.
    """
    K: dict[tuple[int, int], Matrix] = {}
    for load in loads:
        J, X = {}, Transform.identity()
        for i in model.support(load.body):
            joint = model.bodies[i].joint
            J[i] = X @ joint.subspace(q[i])
            X = X @ joint.transform(q[i])
        for j, columns in J.items():
            dF = Forces(tuple(load.change(d) for d in columns.columns))
            for i, rows in J.items():
                K[i, j] = K[i, j] + rows.T @ dF if (i, j) in K else rows.T @ dF
    return K
