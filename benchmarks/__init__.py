"""Speed, compile time and operation counts of chasles beside other libraries.

Run as `python -m benchmarks compare`. One thread each side: thread counts are read when a library
loads, so they are set here, before anything else of this package is imported.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"
