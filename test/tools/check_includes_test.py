"""check-includes.py refuses each kind of forbidden include and nothing else."""

import contextlib
import importlib.util
import io
import pathlib
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools/dev/check-includes.py"
# The script's name is not that of a module.
spec = importlib.util.spec_from_file_location("check_includes", SCRIPT)
check_includes = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_includes)


def run(files):
    """Exit code and output of the script on a tree of these files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = check_includes.main(["--root", folder])
        return code, output.getvalue()


class IncludeTable(unittest.TestCase):
    def assert_refused(self, files, *texts):
        code, output = run(files)
        self.assertEqual(code, 1, output)
        for text in texts:
            self.assertIn(text, output)

    def assert_accepted(self, files):
        code, output = run(files)
        self.assertEqual(code, 0, output)

    def test_accepts_what_the_table_allows(self):
        self.assert_accepted(
            {
                "core/A.h": "#include <vector>\n",
                "core/A.cpp": '#include "core/A.h"\n#include <nlohmann/json.hpp>\n',
                "planner/B.cpp": '#include "core/A.h"\n#include <fmt/format.h>\n',
                "dialects/C.cpp": '#include "mlir/IR/Dialect.h"\n',
                "compiler/import/capture/D.cpp": "#include <ATen/core/Tensor.h>\n",
                "runtime/E.cpp": '#include "core/A.h"\n#include <sys/wait.h>\n',
                "test/F.cpp": "#include <catch2/catch.hpp>\n",
            }
        )

    def test_refuses_each_forbidden_include(self):
        core = {"core/A.h": "", "planner/B.h": "", "runtime/R.h": "", "compiler/emit/E.h": ""}
        forbidden = {
            "core/X.cpp": ['"planner/B.h"', "<ATen/core/Tensor.h>", '"mlir/IR/Dialect.h"', "<unistd.h>"],
            "planner/X.cpp": ['"runtime/R.h"', "<c10/util/Exception.h>", '"llvm/ADT/STLExtras.h"'],
            "dialects/X.cpp": ['"planner/B.h"', "<torch/torch.h>"],
            "compiler/import/capture/X.cpp": ['"mlir/IR/Dialect.h"', '"compiler/emit/E.h"'],
            "compiler/partition/X.cpp": ['"compiler/emit/E.h"', "<ATen/ATen.h>", '"runtime/R.h"'],
            "compiler/driver/X.cpp": ['"runtime/R.h"', "<torch/torch.h>"],
            "runtime/X.cpp": ['"compiler/emit/E.h"', '"planner/B.h"', '"mlir/IR/Dialect.h"'],
        }
        for file, headers in forbidden.items():
            for header in headers:
                with self.subTest(file=file, header=header):
                    text = f"#include <vector>\n#include {header}\n"
                    self.assert_refused(core | {file: text}, f"{file}:2: ", header.strip('"<>'))

    def test_refuses_both_worlds_through_own_headers(self):
        self.assert_refused(
            {
                "tools/M.h": '#include "mlir/IR/Dialect.h"\n',
                "tools/T.h": "#include <ATen/core/Tensor.h>\n",
                "tools/N.h": '#include "tools/M.h"\n',
                "tools/main.cpp": '#include "tools/N.h"\n#include "tools/T.h"\n',
            },
            "tools/main.cpp:1: sees both MLIR",
        )

    def test_refuses_paths_that_do_not_start_at_the_root(self):
        self.assert_refused({"core/A.h": "", "core/A.cpp": '#include "A.h"\n'}, "core/A.cpp:1")

    def test_refuses_headers_that_do_not_exist(self):
        self.assert_refused({"core/A.cpp": '#include "core/Gone.h"\n'}, "core/A.cpp:1")

    def test_refuses_a_tree_without_sources(self):
        self.assert_refused({"README.md": ""}, "no sources found")


if __name__ == "__main__":
    unittest.main()
