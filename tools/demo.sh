#!/usr/bin/env bash
# The whole chain on one machine: exports the architecture of GPT-2 (Hugging
# Face, 4 layers, random weights), plans it for four local ranks, trains it on
# them and verifies the run against one process. Safe to repeat.
#
# usage: tools/demo.sh
set -euo pipefail
cd "$(dirname "$0")/.."

tools/build.sh release monarch-plan monarch-run
monarch_plan=build/release/bin/monarch-plan
out=build/demo
mkdir -p "$out"

echo "== export: GPT-2 -> $out/gpt2.pt2"
.venv/bin/python test/models/export.py gpt2 --size medium --dynamic-batch \
  -o "$out/gpt2.pt2" 2>"$out/export.log" || { cat "$out/export.log" >&2; exit 1; }

echo "== plan: four local ranks, 16 rows a step -> $out/gpt2.plan.json"
"$monarch_plan" plan "$out/gpt2.pt2" --cluster cpu:4 --global-batch 16 \
  -o "$out/gpt2.plan.json"

echo "== compile: $out/gpt2.program"
"$monarch_plan" compile "$out/gpt2.plan.json" "$out/gpt2.pt2" -o "$out/gpt2.program"

echo "== run: 5 steps on four ranks, verified against one process"
"$monarch_plan" run "$out/gpt2.program" --weights "$out/gpt2.pt2" --steps 5 \
  --verify --report "$out/report.json"
