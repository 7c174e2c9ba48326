"""Programs of Balafoutis and Patel (1991), which follow the printed equations exactly.

The programs share no code with the library. The modules contain numbers that count operations
(`counting`), the recursions of chapter 5 (`newton_euler`, `vectors`, `lagrange`, `closed_form`), of
chapter 6 (`mass_matrix`) and of chapter 7 (`sensitivities`). The tests compare the results of the
programs with the library, and their counts with the book.
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
