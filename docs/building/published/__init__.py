"""Operation counts printed in books, and counts of the corresponding methods of chasles."""

from building.published.balafoutis_patel import BY_EQUATION, BY_METHOD
from building.published.polynomial import Polynomial
from building.published.report import body, equations, methods
from building.published.tables import arm, growth, methods_of, one_body, whole

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
