"""Methods kept for history and as references; a function runs them only with `method=`.

Each method follows the form printed in its book, and tests compare the default methods with it.
Nothing outside this package imports these modules; the table `HISTORICAL` of `chasles.algorithms`
lists the methods, and the first use of a method loads its module.
"""
