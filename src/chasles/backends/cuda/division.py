"""Division of a program among groups of GPU threads, in phases.

A crew is a group of warps that process the same 32 states. A crew consists of teams. A team is a
single warp or, if limbs of the same structure (twins) share code, one warp for each twin. The limbs
of a robot exchange little data: velocities propagate outward from the trunk; inertias and forces
propagate inward. Each team processes some of the limbs; the first team also processes the trunk. A
team uses values from other teams only if the values were computed in earlier phases, so the teams
synchronize only between phases.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from chasles.backends.cuda.body import TOLD, Plan
from chasles.backends.lowering import places
from chasles.expr import Instruction, Program


class Division(NamedTuple):
    """Team (of warps) and phase in which each instruction runs, except constants and inputs."""

    team: dict[int, int]
    phase: dict[int, int]
    phases: int

    def order(self, plan: Plan, team: int) -> list[list[int]]:
        """Return the instructions of a team of warps, phase by phase, in the order of the plan."""
        found: list[list[int]] = [[] for _ in range(self.phases)]
        for k in plan.order:
            if self.team.get(k) == team:
                found[self.phase[k]].append(k)
        return found


def groups(program: Program, teams: int) -> dict[int, int]:
    """Return the team of warps that runs each instruction.

    The limbs are distributed so that all teams run about the same number of instructions. The team
    with the fewest limb instructions also runs the instructions of the trunk, and is numbered 0.
    """
    limb = limbs(program)
    sizes = Counter(limb.values())
    del sizes[-1]
    load, team = [0] * teams, {}
    for name, size in sizes.most_common():
        team[name] = load.index(min(load))
        load[team[name]] += size
    least = load.index(min(load))
    number = {0: least, least: 0}
    first = {name: number.get(t, t) for name, t in team.items()} | {-1: 0}
    return {k: first[name] for k, name in limb.items()}


def limbs(program: Program) -> dict[int, int]:
    """Return the limb of each instruction, or -1 for the trunk.

    An instruction belongs to a limb if it depends on inputs of this limb and of no other limb, or
    if all results that depend on the instruction belong to this limb. Dependence on inputs of the
    trunk is ignored. An instruction that depends only on values stored by a twin's warp (`TOLD`,
    see `cuda.twins`) belongs to the trunk.
    """
    code, none = program.code, frozenset[int]()
    from_limbs: list[frozenset[int]] = []
    for op, args, data in code:
        limb = {program.limb(*data)} - {-1} if op == "input" else {-1} if op == TOLD else none
        from_limbs.append(none.union(limb, *(from_limbs[a] for a in args)))
    to_limbs = [none] * len(code)
    for k, results in places(program).items():
        to_limbs[k] = frozenset(program.limb(len(program.inputs) + n, i) for n, i in results)
    for k in range(len(code) - 1, -1, -1):
        for a in code[k].args:
            to_limbs[a] |= to_limbs[k]
    found = {}
    for k, instruction in enumerate(code):
        if to_limbs[k] and instruction.op not in ("const", "input"):
            certain = (s for s in (from_limbs[k], to_limbs[k]) if len(s) == 1)
            (found[k],) = next(certain, (-1,))
    return found


def divided(plan: Plan, teams: int) -> Division:
    """Divide a program into phases, given a plan that assigns its instructions to teams."""
    team = {k: plan.group[k] * (teams > 1) for k in plan.order if k in plan.group}
    phase = _phases(plan, team, teams)
    return Division(team, phase, max(phase.values(), default=0) + 1)


def _apart(code: Sequence[Instruction], team: Mapping[int, int], value: int, user: int) -> bool:
    """Return True if `value` must be computed in an earlier phase than `user`, which uses it."""
    return code[user].op == TOLD or team[value] != team[user]


def _phases(plan: Plan, team: Mapping[int, int], teams: int) -> dict[int, int]:
    """Return the phase of each instruction.

    All instructions are first placed as late as possible. Then the instructions of one team at a
    time are moved as early as the other teams allow. An instruction that can wait is delayed to a
    phase in which its team has less work than the busiest other team.
    """
    code, order = plan.code, [k for k in plan.order if k in team]
    own = {k: [a for a in code[k].args if a in team] for k in order}
    made = {k: [(a, _apart(code, team, a, k)) for a in own[k]] for k in order}
    needed = {k: [(u, _apart(code, team, k, u)) for u in plan.users[k]] for k in order}
    early: dict[int, int] = {}
    for k in order:
        early[k] = max((early[a] + apart for a, apart in made[k]), default=0)
    last = max(early.values(), default=0)
    phase: dict[int, int] = {}
    for t in range(teams):
        late: dict[int, int] = {}
        for k in reversed(order):
            latest = min((late[u] - apart for u, apart in needed[k]), default=last)
            late[k] = phase.get(k, latest)
        load = [Counter(late[k] for k in order if team[k] == v) for v in range(teams)]
        others = [load[v] for v in range(teams) if v != t]
        busy = [max((other[p] for other in others), default=0) for p in range(last + 1)]
        mine: Counter[int] = Counter()
        for k in order:
            if team[k] == t:
                ready = ((late[a] + 1) if apart else phase[a] for a, apart in made[k])
                phase[k] = max(ready, default=0)
                while phase[k] < late[k] and mine[phase[k]] >= busy[phase[k]]:
                    phase[k] += 1
                mine[phase[k]] += 1
    return phase


class Exchange(NamedTuple):
    """First shared-memory index of each value that warps exchange, and the number of indices."""

    place: dict[int, int]
    places: int


def exchanged(
    plan: Plan, division: Division, held: Collection[int], slots: Mapping[int, int]
) -> Exchange:
    """Assign slots in shared memory to values exchanged between warps, except values in `held`.

    `slots` is the number of consecutive slots that each value needs (default: 1). After the last
    phase in which a value is needed, its slots are reused for a value with the same number of
    slots. The warp that computed a value may also read it from its slot.
    """
    code, (team, phase, _) = plan.code, division
    until = {}
    for k in team:
        if k not in held and any(_apart(code, team, k, u) for u in plan.users[k]):
            told = [v for u in plan.users[k] if code[u].op == TOLD for v in plan.users[u]]
            until[k] = max(phase[u] for u in (*plan.users[k], *told))
    place: dict[int, int] = {}
    # for each number of slots per value, pairs (last phase in which the slots are used, first slot)
    taken: dict[int, list[tuple[int, int]]] = {}
    places = 0
    for k in sorted(until, key=lambda k: phase[k]):
        count = slots.get(k, 1)
        same = taken.setdefault(count, [])
        free = next((n for n, (last, _) in enumerate(same) if last < phase[k]), len(same))
        place[k] = same[free][1] if free < len(same) else places
        places += count * (free == len(same))
        same[free : free + 1] = [(until[k], place[k])]
    return Exchange(place, places)
