#!/usr/bin/env python3
"""Checks who includes whom.

Each folder may include only what the table below allows; the table is that of
docs/architecture.md. And no translation unit sees both MLIR and LibTorch, not
even through the project's own headers: each alone takes seconds to parse, and a
host that runs programs has no LLVM.

usage: check-includes.py [--root DIR]
Prints each violation as FILE:LINE: text; exit code 1 if there is any.
"""

import argparse
import pathlib
import re
import sys

# Folders of the project that hold C++.
TOP = ("core", "planner", "dialects", "compiler", "runtime", "tools", "test", "bench")

MLIR = ("mlir/", "llvm/", "mlir-c/")
LIBTORCH = ("ATen/", "c10/", "torch/", "caffe2/", "gloo/")
TEXT = ("nlohmann/", "fmt/")
CUDA = ("cuda_runtime.h", "cuda_runtime_api.h", "nccl.h")
COMMAND_LINE = ("CLI/",)
TESTS = ("catch2/", "malloc.h")
POSIX = (
    "arpa/", "netinet/", "sys/", "dirent.h", "dlfcn.h", "fcntl.h", "netdb.h",
    "poll.h", "pthread.h", "sched.h", "signal.h", "spawn.h", "unistd.h",
)  # fmt: skip
EVERYTHING = MLIR + LIBTORCH + TEXT + CUDA + COMMAND_LINE + TESTS + POSIX

# What the compiler's phases may see of the planner: its data, not its search.
PLANNER_DATA = ("planner/plan/", "planner/resolve/Resolve.h")
PHASE = TEXT + MLIR

# Folder -> (own headers, other headers). The longest matching folder decides.
# Each folder may also include itself; all may include the standard library.
TABLE = {
    "core": ((), TEXT),
    "planner": (("core/",), TEXT),
    "dialects": (("core/",), PHASE),
    "compiler/import/capture": (("core/", "runtime/ops/", "runtime/script/"), TEXT + LIBTORCH),
    "compiler/import": (("core/", "dialects/") + PLANNER_DATA, PHASE),
    "compiler/analyze": (("core/", "dialects/") + PLANNER_DATA, PHASE),
    "compiler/partition": (("core/", "dialects/") + PLANNER_DATA, PHASE),
    "compiler/emit": (("core/", "dialects/") + PLANNER_DATA, PHASE),
    "compiler/driver": (("core/", "dialects/", "planner/", "compiler/"), PHASE + POSIX),
    "runtime": (("core/",), TEXT + LIBTORCH + CUDA + POSIX),
    "tools": (tuple(f + "/" for f in TOP if f not in ("test", "bench")), EVERYTHING),
    "test": (tuple(f + "/" for f in TOP), EVERYTHING),
    "bench": (tuple(f + "/" for f in TOP), EVERYTHING),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
# <vector>, <cstdint>: no folder, no extension.
STANDARD = re.compile(r"^[a-z0-9_]+$")
SOURCES = (".cpp", ".h", ".cu", ".cuh")


def includes_of(path):
    """(line number, header, quoted) of each #include line."""
    found = []
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), start=1):
        if match := INCLUDE.match(line):
            found.append((number, match[1] or match[2], match[1] is not None))
    return found


def folder_of(file):
    """The table's folder for a file, None where the table has none."""
    matching = [f for f in TABLE if file.startswith(f + "/")]
    return max(matching, key=len, default=None)


def is_own(header):
    return header.split("/")[0] in TOP and "/" in header


def check_line(file, header, quoted, files):
    """What is wrong with one include, or None."""
    folder = folder_of(file)
    if folder is None:
        return "no folder of the include table"
    own, other = TABLE[folder]
    if is_own(header):
        if header not in files and not header.endswith(".inc"):
            return f'"{header}" is not a file of the project'
        if header.startswith((folder + "/",) + own):
            return None
        return f'{folder} may not include "{header}"'
    if quoted and not header.startswith(MLIR):
        return f'"{header}" is not named from the root of the project'
    if STANDARD.match(header) or header.startswith(other):
        return None
    return f"{folder} may not include <{header}>"


def check_units(includes):
    """Sources whose closure over own headers reaches both MLIR and LibTorch."""

    def first_reached(source, prefixes):
        seen, queue = {source}, [source]
        while queue:
            for _, header, _ in includes[queue.pop()]:
                if header.startswith(prefixes):
                    return header
                if header in includes and header not in seen:
                    seen.add(header)
                    queue.append(header)
        return None

    for source in sorted(includes):
        mlir = first_reached(source, MLIR)
        torch = first_reached(source, LIBTORCH)
        if mlir and torch:
            yield f"{source}:1: sees both MLIR ({mlir}) and LibTorch ({torch})"


def check(root):
    files = {
        path.relative_to(root).as_posix(): path
        for top in TOP
        for path in (root / top).rglob("*")
        if path.suffix in SOURCES
    }
    # shim/ stands for headers that LibTorch does not ship.
    files = {f: p for f, p in files.items() if not f.startswith("runtime/shim/")}
    includes = {file: includes_of(path) for file, path in files.items()}

    violations = []
    for file in sorted(includes):
        for number, header, quoted in includes[file]:
            if problem := check_line(file, header, quoted, files):
                violations.append(f"{file}:{number}: {problem}")
    violations.extend(check_units(includes))
    return len(files), violations


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--root", type=pathlib.Path, default=default)
    count, violations = check(parser.parse_args(arguments).root)
    for violation in violations:
        print(violation)
    if count == 0:
        print("no sources found")
        return 1
    print(f"{count} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
