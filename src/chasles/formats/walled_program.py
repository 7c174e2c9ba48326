"""Run the function `answer` of a Python file with limits on time and memory.

`chasles.formats.walled` starts this program as `walled_program.py FILE SECONDS MEMORY ARGUMENTS...`
and reads the result of `answer` as JSON. If `answer` raises ValueError or runs out of memory, the
result is {"error": message}. The program does not import chasles, so that it starts quickly.
"""

import json
import os
import runpy
import sys


def main(file: str, seconds: int, memory: int, arguments: list[str]) -> None:
    """Print the result of `answer` as JSON; redirect all other output to stderr."""
    limit(seconds, memory)
    printed = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        json.dump(runpy.run_path(file)["answer"](*arguments), printed)
    except (ValueError, MemoryError) as error:
        json.dump({"error": str(error) or "out of memory"}, printed)
    printed.flush()


def limit(seconds: int, memory: int) -> None:
    """Limit the processor time and address space of this process if the system supports it."""
    if sys.platform != "win32":
        import resource

        for what, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory)):
            try:
                resource.setrlimit(what, (most, most))
            except (ValueError, OSError):
                continue  # macOS defines the memory limit, but does not let a process set it


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
