#!/usr/bin/env bash
# The whole chain on one machine: exports Hugging Face's GPT-2 (12 layers, 124 M
# parameters, random weights, sequences of 128), plans it for four local ranks,
# compiles the plan, trains on the ranks and verifies the run against one
# process. Safe to repeat.
#
# usage: tools/demo.sh
set -euo pipefail
cd "$(dirname "$0")/.."

tools/build.sh release monarch-plan
monarch_plan=build/release/bin/monarch-plan
out=build/demo
mkdir -p "$out"

echo "== export: GPT-2 -> $out/gpt2.pt2"
.venv/bin/python test/models/export.py gpt2 --size 124m --sequence 128 \
  --batch 2 --dynamic-batch -o "$out/gpt2.pt2"

echo "== plan: four local ranks, 8 rows a step"
"$monarch_plan" plan "$out/gpt2.pt2" --cluster cpu:4 --global-batch 8 \
  -o "$out/gpt2.plan.json"

echo "== compile: $out/gpt2.program"
rm -rf "$out/gpt2.program"
"$monarch_plan" compile "$out/gpt2.plan.json" "$out/gpt2.pt2" -o "$out/gpt2.program"

echo "== run: 5 steps, verified against one process"
"$monarch_plan" run "$out/gpt2.program" --steps 5 --verify --report "$out/report.json"
