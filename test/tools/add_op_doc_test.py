"""The worked op of docs/howto/add-op.md is the file that is built and tested.

Its first code block is core/registry/LogSumExp.cpp, its second stands in
test/strategies/ReductionSamples.cpp, apart from white space.
"""

import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parents[2]


def packed(text):
    return re.sub(r"\s", "", text)


def main():
    text = (root / "docs/howto/add-op.md").read_text()
    blocks = re.findall(r"```cpp\n(.*?)```", text, re.S)
    if len(blocks) != 2:
        sys.exit(f"add-op.md has {len(blocks)} C++ blocks, not 2")
    rule = (root / "core/registry/LogSumExp.cpp").read_text()
    if blocks[0] != rule:
        sys.exit("the rule in add-op.md differs from core/registry/LogSumExp.cpp")
    samples = (root / "test/strategies/ReductionSamples.cpp").read_text()
    if packed(blocks[1]) not in packed(samples):
        sys.exit("the samples in add-op.md are not those of ReductionSamples.cpp")


if __name__ == "__main__":
    main()
