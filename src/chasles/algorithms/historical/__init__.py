"""Methods kept for history and as oracles: no function runs them unless `method=` names one.

Each follows the form printed in its book, and tests compare the default methods with them. Nothing
outside this package imports them; the table `HISTORICAL` of `chasles.algorithms` names each, and
the first use of a method loads its module.
"""
