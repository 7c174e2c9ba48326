"""Historical methods, kept as references, which run only if selected with `method=`.

Each method follows its published form, and tests compare the default methods with it. Nothing
outside this package imports these modules. The table `HISTORICAL` of `chasles.algorithms` lists the
methods, and the first use of a method loads its module.
"""
