"""Historical methods, kept as references and run only if selected with `method=`.

Each method follows its published form, and tests compare the default methods with it. Only this
package imports these modules. `chasles.algorithms.HISTORICAL` lists the methods. A module is loaded
when one of its methods is first used.
"""
