"""Methods kept for history and as oracles: no function runs them unless `method=` names one.

They are equations that books print and other libraries use, each in its book's own form, and tests
compare the methods that do run with them. Nothing outside this package imports them; the table
`HISTORICAL` of `chasles.algorithms` names each, and the first use of a method loads its module.
"""
