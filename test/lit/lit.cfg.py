"""lit set-up: every .mlir and .test file below is a shell test whose RUN lines
find the project's tools, FileCheck, not and split-file on the path."""

import os

import lit.formats

config.name = "monarch"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.environment["PATH"] = os.pathsep.join(
    [config.monarch_tools_dir, config.llvm_tools_dir, os.environ.get("PATH", "")]
)
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"
