"""Operation counts that books print, and the same counts made by tracing our programs."""

from chasles.published.balafoutis_patel import BY_EQUATION, BY_METHOD
from chasles.published.polynomial import Polynomial
from chasles.published.report import body, equations, methods
from chasles.published.tables import arm, growth, methods_of, one_body, whole

__all__ = [
    "BY_EQUATION",
    "BY_METHOD",
    "Polynomial",
    "arm",
    "body",
    "equations",
    "growth",
    "methods",
    "methods_of",
    "one_body",
    "whole",
]
