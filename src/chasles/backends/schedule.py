"""The order of a program's instructions that keeps few values alive at a time."""

import heapq
from collections.abc import Collection, Sequence

from chasles.expr import Instruction


def few_alive(
    code: Sequence[Instruction], orders: Sequence[Sequence[int]], elsewhere: Collection[str]
) -> list[int]:
    """The best order found from several to start from, each with all that is needed, in order.

    elsewhere: operations whose results wait in memory and occupy no register.
    """
    found = [tried for order in orders for tried in (_freeing(code, order, elsewhere), list(order))]
    return min(found, key=lambda order: most_alive(code, order, elsewhere))


def most_alive(
    code: Sequence[Instruction], order: Sequence[int], elsewhere: Collection[str]
) -> int:
    """How many values are alive at once, at most: made, and still needed by an instruction."""
    last = {a: time for time, k in enumerate(order) for a in code[k].args}
    ends: dict[int, int] = {}
    alive = most = 0
    for time, k in enumerate(order):
        if k in last and code[k].op not in elsewhere:
            alive += 1
            ends[last[k]] = ends.get(last[k], 0) + 1
        most = max(most, alive)
        alive -= ends.pop(time, 0)
    return most


def _freeing(
    code: Sequence[Instruction], order: Sequence[int], elsewhere: Collection[str]
) -> list[int]:
    """What frees most comes first, if it leaves no more alive than before; else the given order."""
    place = {k: time for time, k in enumerate(order)}
    users: dict[int, list[int]] = {k: [] for k in order}
    for k in order:
        for a in set(code[k].args):
            users[a].append(k)
    left = {k: len(users[k]) for k in order}
    waiting = {k: len(set(code[k].args)) for k in order}
    held = {k: code[k].op not in elsewhere for k in order}
    gain = {k: -int(held[k] and bool(users[k])) for k in order}
    done: set[int] = set()
    by_gain: list[tuple[int, int, int]] = []
    by_place: list[tuple[int, int]] = []

    def offer(k: int) -> None:
        if gain[k] >= 0:
            heapq.heappush(by_gain, (-gain[k], place[k], k))

    def last_use(a: int) -> None:
        """One instruction is left that needs a value: running it frees the value."""
        if held[a]:
            for k in users[a]:
                if k not in done:
                    gain[k] += 1
                    if not waiting[k]:
                        offer(k)

    for a in order:
        if left[a] == 1:
            last_use(a)
    for k in order:
        if not waiting[k]:
            heapq.heappush(by_place, (place[k], k))
            offer(k)
    found: list[int] = []
    while by_place:
        k = heapq.heappop(by_gain)[2] if by_gain else heapq.heappop(by_place)[1]
        if k in done:
            continue
        done.add(k)
        found.append(k)
        for a in set(code[k].args):
            left[a] -= 1
            if left[a] == 1:
                last_use(a)
        for user in users[k]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(by_place, (place[user], user))
                offer(user)
    return found
