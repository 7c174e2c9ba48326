"""Compile one module in a separate process, from text on standard input to code on standard output.

The module runs as a script that imports nothing from chasles, so that it starts in a fraction of a
second. The first line of the input describes the machine; the output begins with the SHA-256 digest
of the rest. LLVM's instruction scheduler before register allocation is disabled, because its run
time grows faster than linearly with the length of a block. Long blocks are already written in an
order that keeps few values alive.
"""

import hashlib
import json
import sys


def main() -> None:
    """Compile the module on standard input.

    The argument of the script is the parent folder of the package llvmlite.
    """
    sys.path.append(sys.argv[1])
    import llvmlite.binding as llvm

    llvm.set_option("chasles", "-enable-misched=false")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = json.loads(sys.stdin.buffer.readline())
    triple, effort = machine.pop("triple"), machine.pop("effort")
    parsed = llvm.parse_assembly(sys.stdin.buffer.read().decode())
    parsed.triple = triple
    target = llvm.Target.from_triple(triple).create_target_machine(
        **machine, opt=effort, reloc="pic", codemodel="small"
    )
    code = bytes(target.emit_object(parsed))
    sys.stdout.buffer.write(hashlib.sha256(code).digest() + code)


if __name__ == "__main__":
    main()
