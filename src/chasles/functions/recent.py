"""Caches of compiled functions with a bounded number of entries."""

from typing import TypeVar

MOST_KEPT = 256
"""Maximum number of entries in each of a robot's caches of compiled functions (`Recent`)."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Recent(dict[_Key, _Value]):
    """A cache of the latest `MOST_KEPT` entries, so that the code of a robot cannot grow forever.

    For example, each new point `at` of a Jacobian and each new controller of a rollout compiles
    code. The oldest entry is removed first, and compiled again if it is needed later.
    """

    def __setitem__(self, key: _Key, value: _Value) -> None:
        super().__setitem__(key, value)
        while len(self) > MOST_KEPT:
            self.pop(next(iter(self), key), None)

    def setdefault(self, key: _Key, value: _Value) -> _Value:
        """Return the value of a key, which is added if there is none."""
        found = self.get(key)
        if found is None:
            self[key] = found = value
        return found
