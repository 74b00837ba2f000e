"""Fuzzes the readers, and prints executions, findings and line coverage of each.

    run.py [--executions 1000000] [--reader NAME ...] [--keep]

Builds preset `fuzz` (Clang, AddressSanitizer, UndefinedBehaviorSanitizer), then
runs one libFuzzer binary a reader from the files of corpus/. Files that broke a
reader stay in the working folder, whose place is printed. --keep adds to the
corpus the smallest set of small new files that together reach all that was
reached. Exit code 1 when something was found, or a reader is covered to less
than 80 %.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "fuzz"
CORPUS = HERE / "corpus"
COVERED_PERCENT = 80
# Longer ones take their time and reach nothing new.
LONGEST_BYTES = 16384
KEPT_BYTES = 8192

# The code that a reader is.
READERS = {
    "archive": ["core/support/Zip.cpp"],
    "cluster": ["planner/cluster/ClusterJson.cpp", "planner/cluster/Units.cpp"],
    "config": ["planner/families/ReadConfig.cpp"],
    "expression": ["core/program/Names.cpp"],
    "graph": ["core/graph/ReadGraph.cpp", "core/graph/Verify.cpp"],
    "json": ["core/support/Json.cpp"],
    "kubernetes-nodes": ["planner/cluster/import/Schedulers.cpp"],
    "layout-plan": ["planner/LayoutPlan.cpp", "planner/step/LayoutText.cpp"],
    "model": ["compiler/import/ReadProgram.cpp", "compiler/import/FileFacts.cpp"],
    "model-file": ["compiler/import/OpenModel.cpp", "compiler/import/RecognizeFile.cpp"],
    "plan": ["planner/plan/PlanFile.cpp", "planner/plan/PlanDecisions.cpp",
             "planner/plan/GlobRules.cpp"],
    "program": ["core/program/ReadProgram.cpp", "core/program/Verify.cpp"],
    "rules": ["core/registry/UserRules.cpp"],
    "safetensors": ["core/support/Safetensors.cpp"],
    "size-expression": ["compiler/import/capture/SizeExpression.cpp"],
    "slurm-topology": ["planner/cluster/import/Schedulers.cpp"],
    "smi-query": ["planner/cluster/import/Host.cpp"],
    "topology-matrix": ["planner/cluster/import/NodeTopology.cpp"],
    "topology-xml": ["planner/cluster/import/Xml.cpp", "planner/cluster/import/NodeTopology.cpp"],
}


def words(reader):
    """Dictionary of a reader: the words of its corpus."""
    found = set()
    for path in sorted((CORPUS / reader).iterdir()):
        found.update(re.findall(rb'"([\w.:/ -]{2,32})"', path.read_bytes()))
    return "".join(f'"{word.decode()}"\n' for word in sorted(found)[:2000])


class Fuzzer:
    def __init__(self, reader, folder, executions):
        self.reader = reader
        self.binary = BUILD / "test" / "fuzz" / f"fuzz-{reader}"
        self.folder = folder / reader
        self.new = self.folder / "new"
        self.new.mkdir(parents=True)
        self.profile = self.folder / "profile"
        self.executions = executions
        (self.folder / "words").write_text(words(reader))

    def call(self, *arguments):
        shm = pathlib.Path("/dev/shm")
        environment = dict(os.environ, LLVM_PROFILE_FILE=f"{self.profile}-%p.profraw")
        if shm.is_dir():
            environment["TMPDIR"] = str(shm)
        return subprocess.run([self.binary, f"-artifact_prefix={self.folder}/", *arguments],
                              env=environment, capture_output=True, text=True, errors="replace")

    def run(self):
        done = self.call(f"-runs={self.executions}", "-seed=1", f"-max_len={LONGEST_BYTES}", "-timeout=20",
                         "-rss_limit_mb=4096", "-print_final_stats=1",
                         f"-dict={self.folder / 'words'}", self.new, CORPUS / self.reader)
        (self.folder / "log").write_text(done.stderr)
        stats = dict(re.findall(r"stat::(\w+):\s+(\d+)", done.stderr))
        self.done = int(stats.get("number_of_executed_units", 0))
        self.speed = int(stats.get("average_exec_per_sec", 0))
        self.isClean = done.returncode == 0
        return self

    def coverage(self):
        """Percent of the lines of the reader's files that the whole corpus reaches."""
        self.call("-runs=0", self.new, CORPUS / self.reader)
        data = self.folder / "profile.data"
        subprocess.run(["llvm-profdata-14", "merge", "-sparse", "-o", data,
                        *self.folder.glob("*.profraw")], check=True)
        report = subprocess.run(
            ["llvm-cov-14", "export", "-summary-only", f"-instr-profile={data}", self.binary,
             *(ROOT / file for file in READERS[self.reader])],
            check=True, capture_output=True, text=True)
        lines = json.loads(report.stdout)["data"][0]["totals"]["lines"]
        return lines["percent"]

    def keep(self):
        kept = self.folder / "kept"
        kept.mkdir()
        self.call("-merge=1", f"-max_len={KEPT_BYTES}", kept, CORPUS / self.reader, self.new)
        known = {path.read_bytes() for path in (CORPUS / self.reader).iterdir()}
        for path in sorted(kept.iterdir(), key=lambda p: (p.stat().st_size, p.name)):
            if path.read_bytes() not in known:
                (CORPUS / self.reader / path.name[:12]).write_bytes(path.read_bytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--executions", type=int, default=1_000_000)
    parser.add_argument("--reader", action="append", choices=sorted(READERS))
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    subprocess.run(["cmake", "--preset", "fuzz"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "--preset", "fuzz"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="monarch-fuzz-"))
    fuzzers = [Fuzzer(reader, folder, options.executions)
               for reader in options.reader or sorted(READERS)]
    isRight = True
    print(f"working folder: {folder}")
    print(f"{'reader':12} {'executions':>10} {'a second':>9} {'findings':>9} {'lines':>7}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for fuzzer in pool.map(Fuzzer.run, fuzzers):
            percent = fuzzer.coverage()
            print(f"{fuzzer.reader:12} {fuzzer.done:10} {fuzzer.speed:9} "
                  f"{0 if fuzzer.isClean else 1:9} {percent:6.1f}%", flush=True)
            isRight &= fuzzer.isClean and percent >= COVERED_PERCENT
            if options.keep:
                fuzzer.keep()
    return 0 if isRight else 1


if __name__ == "__main__":
    sys.exit(main())
