"""Methods kept for history and as references, which run only if chosen with `method=`.

Each method follows the form printed in its book, and tests compare the default methods with it.
Nothing outside this package imports these modules. The table `HISTORICAL` of `chasles.algorithms`
lists the methods, and the first use of a method loads its module.
"""
