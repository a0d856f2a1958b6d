#!/usr/bin/env python3
"""Writes what the CUDA shims need besides their sources, from the libraries of the installed wheel.

    generate.py TORCH_FOLDER OUTPUT_FOLDER

For each library in SHIMS there is NAME.c, a weak stub for each function of the original, and NAME.map, a linker version
script with the original's version nodes. A function in the .cpp files replaces the stub of the same name.
"""

import pathlib
import re
import subprocess
import sys

SHIMS = {
    "cudart": "libcudart.so.13",
    "cublas": "libcublas.so.13",
    "cublasLt": "libcublasLt.so.13",
    "nccl": "libnccl.so.2",
}
# The driver's library comes with the driver, not with the wheel. Its names are those that the wheel's libraries link.
DRIVER = ("cuda", "libcuda.so.1")

STUBS = """\
// Made by generate.py from {library}.
struct Stub {{
  const char* name;
  unsigned calls;
}};
void cleaveShimStubs(const char* library, const struct Stub* stubs, unsigned count);
static struct Stub stubs[] = {{
{table}
}};
__attribute__((constructor)) static void registerStubs(void) {{
  cleaveShimStubs("{library}", stubs, sizeof stubs / sizeof *stubs);
}}
#define STUB(index, name)                      \\
  __attribute__((weak)) long name(void) {{      \\
    __atomic_add_fetch(&stubs[index].calls, 1, __ATOMIC_RELAXED); \\
    return 0;                                  \\
  }}
{functions}
"""


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library):
    """Pairs of a function's name and its version node ("": none), in the order of their names."""
    found = set()
    for line in run("nm", "-D", "--defined-only", str(library)).splitlines():
        kind, symbol = line.split()[-2:]
        if kind in "TWi":
            name, _, version = symbol.partition("@")
            found.add((name, version.lstrip("@")))
        elif kind != "A":  # A: the version node itself
            sys.exit(f"{library}: {symbol} is data ({kind}). Write it by hand in the shim's source.")
    return sorted(found)


def linked_by(folder, library):
    """Functions of `library` that libraries below `folder` link, without a version."""
    found = set()
    for user in sorted(folder.glob("*.so*")):
        if f"[{library}]" not in run("readelf", "-d", str(user)):
            continue
        for line in run("nm", "-D", "--undefined-only", str(user)).splitlines():
            name = line.split()[-1]
            if re.fullmatch(r"cu[A-Z]\w*", name):
                found.add((name, ""))
    return sorted(found)


def version_script(functions):
    nodes = {}
    for name, version in functions:
        nodes.setdefault(version, []).append(name)
    texts = []
    for version, names in sorted(nodes.items()):
        # One node alone may hide the rest.
        rest = " local: *;" if len(nodes) == 1 else ""
        texts.append(f"{version} {{ global: {' '.join(name + ';' for name in names)}{rest} }};\n".lstrip())
    return "".join(texts)


def write(output, name, library, functions, extra=()):
    table = ",\n".join(f'    {{"{function}", 0}}' for function, _ in functions)
    stubs = "\n".join(f"STUB({index}, {function})" for index, (function, _) in enumerate(functions))
    (output / f"{name}.c").write_text(STUBS.format(library=library, table=table, functions=stubs))
    (output / f"{name}.map").write_text(version_script(functions + list(extra)))


def main():
    torch, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    output.mkdir(parents=True, exist_ok=True)
    for name, library in SHIMS.items():
        originals = sorted(torch.glob(f"../nvidia/*/lib/{library}"))
        if not originals:
            sys.exit(f"{torch}/../nvidia has no {library}. Install the wheel with CUDA 13.")
        write(output, name, library, exported(originals[0]))
    name, library = DRIVER
    write(output, name, library, linked_by(torch / "lib", library), [("cu*", "")])


if __name__ == "__main__":
    main()
