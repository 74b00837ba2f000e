"""Layouts for other targets: planned, kept in files, priced again, traced.

    layouts.py --bin DIR
"""

import json

from tool import BAD_INPUT, INFEASIBLE, USAGE, ToolTest, llama, main

PINS = "tp=2,pp=2,dp=4,cp=1,ep=1,vpp=1,zero=1,recompute=none,micro_batch=1"


class Layouts(ToolTest):
    def planned(self, *more, target="megatron", fix=PINS):
        self.write("config.json", llama())
        return self.document("plan", "config.json", "--seq-len", 4096, "--cluster", "2xp5.48xlarge",
                             "--global-batch", 64, "--target", target, "--fix", fix,
                             "-o", "plan.json", *more)

    def test_a_plan_says_all_that_a_person_asks(self):
        self.planned()
        text = self.tool("plan", "config.json", "--seq-len", 4096, "--cluster", "2xp5.48xlarge",
                         "--global-batch", 64, "--target", "megatron", "--fix", PINS).out
        for part in ("tp 2", "pp 2", "dp 4", "stages", "step", "90 %", "compute", "bubble",
                     "tokens/s", "MFU", "memory", "activations", "logits", "binds"):
            self.assertIn(part, text)
        self.assertLessEqual(len(text.splitlines()), 40)

    def test_the_file_is_the_plan(self):
        plan = self.planned()
        text = (self.folder / "plan.json").read_text()
        self.assertEqual(json.loads(text), plan)
        self.assertEqual(plan["schema"], "monarch.plan/1")
        self.assertEqual((plan["layout"]["tp"], plan["layout"]["pp"]), (2, 2))
        self.assertEqual(plan["origins"]["tp"], "user")
        # The same inputs, the same bytes.
        self.planned()
        self.assertEqual((self.folder / "plan.json").read_text(), text)
        shown = self.tool("plan", "config.json", "--seq-len", 4096, "--cluster", "2xp5.48xlarge",
                          "--global-batch", 64, "--target", "megatron", "--fix", PINS, "-o", "-")
        self.assertEqual(shown.out, text)

    def test_priced_again_where_it_was_it_costs_the_same(self):
        plan = self.planned()
        again = self.document("simulate", "plan.json")
        self.assertEqual(again["step_seconds"], plan["prediction"]["step_seconds"])
        self.assertEqual(again["memory_bytes"], plan["prediction"]["memory_bytes"])
        self.assertTrue(again["recosted"])

    def test_a_slower_cluster_a_slow_rank_a_slow_link(self):
        plan = self.planned()
        seconds = plan["prediction"]["step_seconds"]
        for arguments in (("--cluster", "2xp4de.24xlarge"), ("--slow-rank", "3=1.3"),
                          ("--slow-link", "nvlink=0.1"), ("--slow-link", "nic=0.01")):
            with self.subTest(arguments=arguments):
                again = self.document("simulate", "plan.json", *arguments)
                self.assertGreater(again["step_seconds"], seconds * 1.01)
        # A whole stage waits for its slow rank, whichever that is.
        slow = [self.document("simulate", "plan.json", "--slow-rank", f"{rank}=1.3")
                for rank in (0, 7)]
        self.assertEqual(slow[0]["step_seconds"], slow[1]["step_seconds"])
        self.refused(INFEASIBLE, "simulate", "plan.json", "--cluster", "p5.48xlarge",
                     says=("16 devices of 8",))

    def test_a_trace_is_chromes(self):
        for pins in (PINS, PINS.replace("vpp=1", "vpp=4"), PINS.replace("pp=2,dp=4", "pp=1,dp=8")):
            with self.subTest(pins=pins):
                plan = self.planned(fix=pins)
                self.tool("simulate", "plan.json", "--trace", "trace.json")
                trace = json.loads((self.folder / "trace.json").read_text())
                self.assertIn(trace["displayTimeUnit"], ("ms", "ns"))
                tracks, names = {}, set()
                for event in trace["traceEvents"]:
                    self.assertIsInstance(event["pid"], int)
                    if event["ph"] == "M":
                        self.assertEqual(event["name"], "process_name")
                        names.add(event["pid"])
                        continue
                    self.assertEqual(event["ph"], "X")
                    self.assertIsInstance(event["tid"], int)
                    self.assertGreaterEqual(event["ts"], 0)
                    self.assertGreater(event["dur"], 0)
                    tracks.setdefault((event["pid"], event["tid"]), []).append(event)
                self.assertEqual({pid for pid, _ in tracks}, names)
                layout = plan["layout"]
                units = layout["global_batch"] // layout["dp"] // layout["micro_batch"]
                for events in tracks.values():
                    events.sort(key=lambda event: event["ts"])
                    for before, after in zip(events, events[1:]):
                        self.assertGreaterEqual(after["ts"] + 2e-3, before["ts"] + before["dur"])
                    forward = [e for e in events if e.get("cat") == "forward"]
                    self.assertEqual(len(forward), units * layout["chunks"])
                end = max(e["ts"] + e["dur"] for track in tracks.values() for e in track)
                self.assertAlmostEqual(end / 1e6 / plan["prediction"]["step_seconds"], 1, delta=0.02)

    def test_optimizers_keep_what_they_keep(self):
        kept = {}
        for optimizer in ("adamw", "sgd_momentum", "sgd", "adamw_8bit"):
            plan = self.planned("--optimizer", optimizer)
            self.assertEqual(plan["inputs"]["workload"]["optimizer"], optimizer)
            kept[optimizer] = plan["prediction"]["memory_bytes"]["optimizer"]
            again = self.document("simulate", "plan.json")
            self.assertEqual(again["memory_bytes"]["optimizer"], kept[optimizer])
        # Bytes a parameter: 32-bit weights, and moments beside them.
        for optimizer, size in (("sgd_momentum", 8), ("sgd", 4), ("adamw_8bit", 6)):
            self.assertAlmostEqual(kept[optimizer] / kept["adamw"], size / 12, delta=0.001)
        self.refused(INFEASIBLE, "plan", "config.json", "--seq-len", 32, "--cluster", "cpu:2",
                     "--global-batch", 8, "--optimizer", "adamw_8bit", "-o", "own.json",
                     says=("adamw, sgd",))

    def test_the_optimizer_on_the_host_frees_memory_and_takes_time(self):
        here = self.planned()["prediction"]
        there = self.planned(fix=PINS + ",offload=on")
        self.assertTrue(there["layout"]["offload"])
        self.assertEqual(there["prediction"]["memory_bytes"]["optimizer"], 0)
        self.assertGreater(there["prediction"]["step_seconds"], here["step_seconds"])
        again = self.document("simulate", "plan.json")
        self.assertEqual(again["step_seconds"], there["prediction"]["step_seconds"])

    def test_schedules_that_split_the_backward(self):
        for schedule, chunks in (("zb1", 1), ("zb2", 1), ("zbv", 2), ("vhalf", 2)):
            with self.subTest(schedule=schedule):
                plan = self.planned(target="megatron-zb", fix=f"pp=4,schedule={schedule}")
                self.assertEqual(plan["layout"]["schedule"], schedule)
                self.assertEqual(plan["layout"]["chunks"], chunks)
                self.tool("simulate", "plan.json", "--trace", "trace.json")
                events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
                counts = {kind: sum(e.get("cat") == kind for e in events)
                          for kind in ("forward", "backward", "weights")}
                self.assertEqual(len(set(counts.values())), 1, counts)
                self.assertGreater(counts["weights"], 0)
        self.refused(INFEASIBLE, "plan", "config.json", "--seq-len", 4096, "--cluster",
                     "2xp5.48xlarge", "--global-batch", 64, "--target", "megatron-zb", "--fix",
                     "pp=1,schedule=zbv", "-o", "plan.json")

    def test_a_target_is_not_offered_what_it_cannot_express(self):
        self.write("config.json", llama())
        for target, pin, says in (("torchtitan", "zero=1", "zero 3"), ("megatron", "zero=3", "zero"),
                                  ("deepspeed", "cp=2", "cp 1"), ("deepspeed", "ep=2", "ep 1"),
                                  ("deepspeed-zero3", "pp=2", "pp 1"),
                                  ("megatron", "schedule=zb1", "1f1b"),
                                  ("megatron", "tp=3", "1, 2, 4, 8, 16"),
                                  ("megatron", "ep=2", "ep 1")):
            with self.subTest(target=target, pin=pin):
                self.refused(INFEASIBLE, "plan", "config.json", "--seq-len", 4096, "--cluster",
                             "2xp5.48xlarge", "--global-batch", 64, "--target", target,
                             "--fix", pin, "-o", "plan.json", says=("MP33", says))

    def test_a_config_without_a_length(self):
        self.write("config.json", llama())
        self.refused(USAGE, "plan", "config.json", "--cluster", "p5.48xlarge", "--global-batch", 64,
                     "--target", "megatron", says=("--seq-len",))

    def test_the_own_target_plans_a_config_op_by_op(self):
        small = llama(layers=2, hidden=64, heads=4, kv_heads=2, mlp=128, vocabulary=256)
        self.write("config.json", small)
        plan = self.document("plan", "config.json", "--seq-len", 32, "--cluster", "cpu:4",
                             "--global-batch", 8, "--dtype", "float32", "-o", "plan.json")
        self.assertEqual(plan["target"], "monarch")
        self.assertIn("choices", plan["decisions"])
        again = self.document("simulate", "plan.json", "config.json", "--seq-len", 32, "--dtype",
                              "float32", "--cluster", "cpu:4")
        self.assertAlmostEqual(again["step_seconds"] / plan["prediction"]["step_seconds"], 1,
                               delta=1e-5)
        self.refused(6, "simulate", "plan.json", "config.json", "--seq-len", 64, "--dtype",
                     "float32", "--cluster", "cpu:4", says=("another model",))
        self.refused(USAGE, "simulate", "plan.json", "--cluster", "cpu:4", says=("PLAN MODEL",))

    def test_plans_of_nonsense(self):
        plan = self.planned()

        def changed(change):
            other = json.loads(json.dumps(plan))
            change(other)
            return self.write("changed.json", other)

        for section, key, value in (
                ("layout", "tp", 0), ("layout", "tp", "two"), ("layout", "tp", 2**62),
                ("layout", "schedule", "dapple"), ("layout", "recompute", 3), ("layout", "zero", 4),
                ("layout", "stage_layers", [1]), ("layout", "stage_layers", [-1, 33]),
                ("layout", "precision", "int3"), ("layout", "global_batch", -1),
                ("layout", "sequence_parallel", "yes"), ("layout", "micro_batch", None)):
            with self.subTest(section=section, key=key, value=value):
                self.refused(BAD_INPUT, "simulate", changed(
                    lambda other: other[section].update({key: value})), says=(f"/{section}/{key}",))
        for key, value in (("layers", 0), ("hidden", -1), ("heads", 2**40), ("family", "rnn"),
                           ("type", "int3"), ("sequence", "long"), ("experts", 3),
                           ("kv_heads", 3)):
            with self.subTest(key=key, value=value):
                self.refused(BAD_INPUT, "simulate", changed(
                    lambda other: other["inputs"]["model"].update({key: value})))
        for section in ("layout", "inputs"):
            self.refused(BAD_INPUT, "simulate", changed(lambda other: other.pop(section)))
        self.refused(USAGE, "simulate", changed(lambda other: other.update(target="nobody")))
        self.refused(INFEASIBLE, "simulate", changed(
            lambda other: other["layout"].update(dp=3)), says=("devices of 16",))
        text = (self.folder / "plan.json").read_text()
        self.refused(BAD_INPUT, "simulate", self.write("cut.json", text[:len(text) // 2]))
        self.refused(BAD_INPUT, "simulate",
                     self.write("newer.json", text.replace("monarch.plan/1", "monarch.plan/2")))


if __name__ == "__main__":
    main()
