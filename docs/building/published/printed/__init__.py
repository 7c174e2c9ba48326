"""Programs of Balafoutis and Patel (1991), each written as its equations are printed.

They share no code with the library: numbers that count (`counting`), the recursions of chapter 5
(`newton_euler`, `lagrange`, `closed_form`), of chapter 6 (`mass_matrix`) and of chapter 7
(`sensitivities`). Their results are compared with the library's, their counts with the book's.
"""

from building.published.printed.counting import Counts, Link, Sheet
from building.published.printed.newton_euler import State
from building.published.printed.programs import BY_METHOD, BY_TABLE, Program, count, fitted

__all__ = [
    "BY_METHOD",
    "BY_TABLE",
    "Counts",
    "Link",
    "Program",
    "Sheet",
    "State",
    "count",
    "fitted",
]
