"""Prefixes for exported C code that do not conflict with compilers, headers, CMake or file systems.

A prefix names files (`PREFIX.h`), CMake targets (`PREFIX`, `PREFIX_test`) and functions
(`PREFIX_mass_matrix`). A header in the include path would hide a system header of the same name.
Likewise, a target would hide a CMake target or a system library (such as `m`) of the same name.
"""

import hashlib
import re

LONGEST = 48
"""Maximum number of characters in a prefix, so that file and function names stay readable."""

_DIGITS = 8
"""Number of hexadecimal digits in the hash that replaces the end of a long name."""

RESERVED: dict[str, frozenset[str]] = {
    why: frozenset(names.split())
    for why, names in {
        "a C or C++ keyword": (
            "alignas alignof and and_eq asm atomic auto bitand bitor bool break case catch char "
            "char16_t char32_t char8_t class co_await co_return co_yield compl complex concept "
            "const const_cast consteval constexpr constinit continue decltype default delete do "
            "double dynamic_cast else enum explicit export extern false final float for friend "
            "generic goto if imaginary import inline int long main module mutable namespace new "
            "noexcept noreturn not not_eq null nullptr operator or or_eq override private "
            "protected public register reinterpret_cast requires restrict return short signed "
            "sizeof static static_assert static_cast struct switch template this thread_local "
            "throw true try typedef typeid typename typeof typeof_unqual union unsigned using "
            "virtual void volatile wchar_t while xor xor_eq"
        ),
        "a CMake target": (
            "all all_build cmake ctest clean clean_all default depend edit_cache experimental help "
            "install install_local install_strip lib list_install_components main nightly "
            "nightlymemorycheck continuous package package_source preinstall project "
            "rebuild_cache run_tests test uninstall zero_check"
        ),
        "a system header": (
            "aio alloca ar argp argz arpa assert bits byteswap complex conio cpio crypt ctype "
            "cursesapp dirent direct dlfcn dos elf endian envz err errno error execinfo fcntl "
            "features fenv float fmtmsg fnmatch fpu_control fstab fts ftw getopt glob gnumake grp "
            "iconv ieee754 ifaddrs immintrin intrin inttypes io iso646 langinfo libgen libintl "
            "limits link linux locale mach malloc math mcheck memory mmintrin monetary mqueue "
            "mntent ndbm net netdb netinet new nl_types obstack omp paths poll printf process "
            "pthread pty pwd re_comp regex regexp resolv sched search semaphore setjmp sgtty "
            "shadow signal spawn stab stdalign stdarg stdatomic stdbit stdbool "
            "stdckdint stddef stdint stdio stdio_ext stdlib stdnoreturn string strings stropts "
            "sys syscall sysexits syslog tar term termio termios tgmath thread_db threads time "
            "trace ttyent uchar ucontext ulimit unistd unwind ustat utime utmp utmpx values "
            "varargs wait wchar wctype windows winsock wordexp xlocale xmmintrin"
        ),
        "a system library": (
            "asan atomic bsd c cc crypto dl gcc gcc_s gomp m msvcrt nsl pthread quadmath rt "
            "supc stdc tsan ubsan util uuid"
        ),
        "a Windows device": (
            "aux clock con nul prn "
            + " ".join(f"{port}{n}" for port in ("com", "lpt") for n in range(10))
        ),
    }.items()
}
"""Words that cannot be used as a prefix, grouped by the reason (the key). The comparison ignores
case, as some file systems do."""


def identifier(text: str) -> str:
    """Convert text to a C identifier, which consists of letters, digits and underscores."""
    name = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9]", "_", text)).strip("_")
    return name if re.match(r"[A-Za-z]", name) else f"x{name}"


def prefix_for(robot: str) -> tuple[str, str]:
    """Return a prefix for a robot's C code, and a note (or "") that explains a changed name."""
    name, why = identifier(robot).lower(), ""
    if name == "x" and robot.lower() != "x":
        why = "the name has no ASCII letter or digit" if robot else "the robot has no name"
        name = f"robot_{_digest(robot)}" if robot else "robot_unnamed"
    if len(name) > LONGEST:
        why = f"the name is longer than {LONGEST} characters"
        name = f"{name[: LONGEST - _DIGITS - 1].rstrip('_')}_{_digest(robot)}"
    if taken := taken_by(name):
        name, why = f"robot_{name}", f"{name!r} is {taken}"
    return name, f"names begin with {name!r}, because {why}" if why else ""


def taken_by(prefix: str) -> str:
    """Return the reason why a prefix is reserved, or "" if it is not."""
    return next((why for why, names in RESERVED.items() if prefix.lower() in names), "")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
