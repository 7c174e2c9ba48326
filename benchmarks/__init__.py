"""Benchmarks of chasles, compared with other libraries: `python -m benchmarks COMMAND`.

All libraries use one thread. They read the number of threads when they are imported, so it is set
here, before any other module of this package is imported.
"""

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"
