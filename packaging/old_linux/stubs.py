# SPDX-License-Identifier: Apache-2.0
"""Writes the text of a stub of a shared library: its names up to a version, with nothing behind them.

    stubs.py LIBRARY LIMIT TEXT VERSIONS     for instance: libc.so.6 GLIBC_2.28 libc.s libc.map

What is linked with the stub asks for no newer version, and where a name has several, for the newest within the limit.
TEXT is for the assembler, VERSIONS is the script of versions for the linker.
"""
import re
import subprocess
import sys

KINDS = {"FUNC": "@function", "IFUNC": "@function", "GNU_IFUNC": "@function", "OBJECT": "@object", "TLS": "@tls_object"}
SECTIONS = {"@function": ".text", "@object": ".bss", "@tls_object": '.section .tbss,"awT",@nobits'}
SYMBOL = re.compile(r"^\s*\d+: [0-9a-f]+ +(\w+) (\w+) +(GLOBAL|WEAK|UNIQUE) +DEFAULT +(\w+) (\w[^@]*)@@?(\S+)")


def numbers(version):
    """("GLIBC", [2, 28]) of "GLIBC_2.28"; what has no number, such as GLIBC_PRIVATE, is of no version."""
    family, _, number = version.rpartition("_")
    return (family, [int(part) for part in number.split(".")]) if re.fullmatch(r"[\d.]+", number) else (version, None)


def symbols(library, limits):
    """{name: (version, kind, size)} of what the library defines: of each name the newest version within the limits."""
    found = {}
    lines = subprocess.run(["readelf", "--wide", "--dyn-syms", library], check=True, capture_output=True, text=True)
    for line in lines.stdout.splitlines():
        match = SYMBOL.match(line)
        if match is None or match[4] in ("UND", "ABS") or match[2] not in KINDS:
            continue
        size, kind, _, _, name, version = match.groups()
        family, number = numbers(version)
        if number is None or number > limits.get(family, number):
            continue
        if name not in found or numbers(found[name][0])[1] < number:
            found[name] = (version, KINDS[kind], int(size, 0))
    return found


def assembly(found):
    for index, (name, (version, kind, size)) in enumerate(sorted(found.items())):
        section = SECTIONS[kind]
        yield f"{section}\n.globl s{index}\n.type s{index},{kind}\n.size s{index},{size}\ns{index}:\n.skip {max(size, 1)}\n"
        yield f".symver s{index},{name}@@{version}\n"
    yield '.section .note.GNU-stack,"",@progbits\n'


def main(library, limit, text, versions):
    limits = dict(numbers(one) for one in limit.split(","))
    found = symbols(library, limits)
    with open(text, "w") as file:
        file.writelines(assembly(found))
    with open(versions, "w") as file:
        file.writelines(f"{version} {{ }};\n" for version in sorted({version for version, _, _ in found.values()}))


main(*sys.argv[1:])
