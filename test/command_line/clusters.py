"""Clusters: listed, shown, validated, imported, detected, calibrated.

    clusters.py --bin DIR
"""

import json

from tool import BAD_INPUT, INFEASIBLE, UNSUPPORTED, USAGE, ToolTest, llama, main

MATRIX = """\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity
GPU0\t X \t{a}\t{b}\t{b}\tPIX\t0-51\t0
GPU1\t{a}\t X \t{b}\t{b}\tSYS\t0-51\t0
GPU2\t{b}\t{b}\t X \t{a}\tSYS\t0-51\t0
GPU3\t{b}\t{b}\t{a}\t X \tSYS\t0-51\t0
NIC0\tPIX\tSYS\tSYS\tSYS\t X

Legend:

  X    = Self
"""

NCCL = """<?xml version="1.0"?>
<!-- written by NCCL_TOPO_DUMP_FILE -->
<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:20:00.0" count="18" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:12:00.0" class="0x020700">
        <nic><net name="mlx5_0" dev="0" speed="400000" port="1" gdr="1"/></nic>
      </pci>
    </pci>
    <pci busid="0000:13:00.0" class="0x030200">
      <gpu dev="1" sm="90" rank="1"><nvlink target="0000:20:00.0" count="18" tclass="0x068000"/></gpu>
    </pci>
  </cpu>
</system>
"""

SLURM = """# two leaves
SwitchName=leaf0 Nodes=node[00-03]
SwitchName=leaf1 Nodes=node[04-06],gpu7
SwitchName=spine Switches=leaf[0-1]
"""


def node(name, product="NVIDIA-H100-80GB-HBM3", count="8", memory="81559", instance=""):
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": count,
              "nvidia.com/gpu.memory": memory}
    if instance:
        labels["node.kubernetes.io/instance-type"] = instance
    return {"metadata": {"name": name, "labels": labels}, "status": {}}


class Clusters(ToolTest):
    def shown(self, name):
        return self.document("cluster", "show", name)

    # Known machines and files.

    def test_list_names_instances_and_cards_with_provenance(self):
        machines = self.document("cluster", "list")
        by_name = {entry["name"]: entry for entry in machines["instances"]}
        self.assertEqual(by_name["p5.48xlarge"]["provenance"], "read")
        self.assertEqual(by_name["p4de.24xlarge"]["provenance"], "unverified")
        self.assertIn("RTX4090", {entry["name"] for entry in machines["devices"]})
        self.assertIn("p5.48xlarge", self.tool("cluster", "list").out)

    def test_a_file_that_extends_a_preset_says_only_what_differs(self):
        name = self.write("mine.json", {
            "schema": "monarch.cluster/1", "extends": "p5.48xlarge", "count": 4, "site": "here",
            "levels": [{"name": "nic", "bw_bytes_per_second": 25_000_000_000}],
            "devices": {"H100-SXM-80GB": {"memory": "94GB"}}})
        whole = self.shown(name)
        self.assertEqual(whole["nodes"][0]["count"], 4)
        nvlink, nic = whole["levels"]
        self.assertEqual((nvlink["size"], nic["size"]), (8, 32))
        self.assertEqual(nvlink["bw"], "450GB/s")
        # One spelling of a quantity takes the place of the other.
        self.assertNotIn("bw", nic)
        self.assertEqual(nic["bw_bytes_per_second"], 25_000_000_000)
        self.assertEqual(whole["devices"]["H100-SXM5-80GB"]["memory"], "94GB")
        self.assertEqual(whole["site"], "here")
        # Who says what.
        self.assertEqual(whole["provenance"]["extends"], "p5.48xlarge")
        self.assertIn("/devices/H100-SXM5-80GB/memory", whole["provenance"]["given"])
        self.assertNotIn("/levels/nvlink/bw", whole["provenance"]["given"])
        # The whole document is a cluster by itself, and stays as it is.
        again = self.write("whole.json", whole)
        self.assertEqual(self.shown(again), whole)
        self.assertIn("32 x H100", self.tool("cluster", "validate", name).out)

    def test_all_that_is_wrong_with_a_file_at_once(self):
        name = self.write("wrong.json", {
            "schema": "monarch.cluster/1", "extends": "p5.48xlarge", "count": -1,
            "levels": [{"name": "nvlnk", "bw": "1GB/s"}, {"name": "nic", "bw": 3}],
            "devices": {"A100": {}, "H100-SXM5-80GB": {"memory": "80 apples"}},
            "calibration": {"compute": 0, "network": "fast"}})
        for verb in ("validate", "show"):
            self.refused(BAD_INPUT, "cluster", verb, name, says=(
                "/nodes/0/count", "/levels/nvlnk", "nvlink, nic", "/devices/A100",
                "/devices/H100-SXM5-80GB/memory", "GiB", "/calibration/compute",
                "/calibration/network"))

    def test_fields_of_nonsense(self):
        good = {"schema": "monarch.cluster/1", "extends": "p5.48xlarge"}
        for key, value in (("extends", 3), ("extends", "p5.49xlarge"), ("extends", "A100"),
                           ("devices", []), ("levels", {}), ("levels", [3]), ("nodes", {}),
                           ("nodes", [[]]), ("provenance", 1), ("calibration", []),
                           ("count", "two"), ("count", 10**9), ("name", 3),
                           ("schema", "monarch.cluster/9")):
            with self.subTest(key=key, value=value):
                name = self.write("wrong.json", {**good, key: value})
                self.refused(BAD_INPUT, "cluster", "validate", name)
        for text in ("", "{", "[]", "null", "\x00", "{}"):
            with self.subTest(text=text):
                self.refused(BAD_INPUT, "cluster", "validate", self.write("wrong.json", text))

    # Imports.

    def imported(self, source, text, *flags):
        self.write("source.txt", text)
        self.tool("cluster", "import", source, "source.txt", *flags, "-o", "made.json")
        return self.shown("made.json")

    def test_nvidia_smi_matrix(self):
        whole = self.imported("nvidia-smi", MATRIX.format(a="NV18", b="NV18"), "--device",
                              "H100-SXM-80GB")
        self.assertEqual(whole["nodes"][0]["per_node"], 4)
        self.assertEqual(whole["levels"][0]["bw"], "450GB/s")
        # Bridges join pairs alone: a ring over four crosses PCIe.
        pairs = self.imported("nvidia-smi", MATRIX.format(a="NV12", b="SYS"), "--device",
                              "A100-PCIe-80GB")
        self.assertEqual(pairs["levels"][0]["bw"], "31.5GB/s")
        self.assertIn("pairs", pairs["provenance"]["links"])

    def test_matrix_that_is_none(self):
        good = MATRIX.format(a="NV18", b="NV18")
        for text in ("", "GPU0\n", good.split("\nGPU3")[0], good.replace("GPU2\t", "", 1),
                     good.replace("NV18", "MAYBE")):
            with self.subTest(text=text[:40]):
                self.write("source.txt", text)
                self.refused(BAD_INPUT, "cluster", "import", "nvidia-smi", "source.txt", "--device",
                             "H100-SXM-80GB", "-o", "made.json")
        self.write("source.txt", good)
        self.refused(BAD_INPUT, "cluster", "import", "nvidia-smi", "source.txt",
                     says=("--device",))
        self.refused(BAD_INPUT, "cluster", "import", "nvidia-smi", "source.txt", "--device", "A100",
                     says=("A100-SXM4-40GB", "A100-SXM4-80GB"))

    def test_nccl_topology(self):
        whole = self.imported("nccl-xml", NCCL, "--device", "H200")
        self.assertEqual(whole["nodes"][0], {"count": 1, "per_node": 2,
                                             "device": "H200-SXM5-141GB"})
        self.assertEqual(whole["levels"][0]["bw"], "450GB/s")
        self.assertEqual(whole["levels"][1]["bw"], "200Gb/s")
        self.write("source.txt", NCCL)
        self.refused(BAD_INPUT, "cluster", "import", "nccl-xml", "source.txt",
                     says=("H100-SXM5-80GB", "H200-SXM5-141GB"))

    def test_xml_that_is_none(self):
        for text in ("", "<", "<system", "<system>", "<system><gpu></system>", "<a/>",
                     "<system/>", '<system a="1>', "<system a=1/>", "<system/><system/>",
                     "<s>" * 10_000, NCCL[:len(NCCL) // 2], NCCL.replace('sm="90" rank="1"',
                                                                         'sm="80" rank="1"')):
            with self.subTest(text=text[:30]):
                self.write("source.txt", text)
                self.refused(BAD_INPUT, "cluster", "import", "nccl-xml", "source.txt", "--device",
                             "H200", "-o", "made.json")

    def test_slurm(self):
        whole = self.imported("slurm", SLURM, "--node", "p5.48xlarge")
        self.assertEqual(whole["nodes"][0]["count"], 8)
        self.assertEqual(whole["levels"][1]["size"], 64)
        self.assertEqual(whole["hosts"][3:5], ["node03", "node04"])
        self.assertEqual(whole["groups"]["nodes"], [4, 4])
        for text in ("", "SwitchName=a", "SwitchName=a Nodes=n[", "SwitchName=a Nodes=n[3-1]",
                     "SwitchName=a Nodes=n[0-999999999]",
                     "SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1"):
            with self.subTest(text=text):
                self.write("source.txt", text)
                self.refused(BAD_INPUT, "cluster", "import", "slurm", "source.txt", "--node",
                             "p5.48xlarge", "-o", "made.json")
        self.write("source.txt", SLURM)
        for node_flags in ((), ("--node", "2xp5.48xlarge"), ("--node", "p5")):
            self.refused(BAD_INPUT, "cluster", "import", "slurm", "source.txt", *node_flags)

    def test_kubernetes(self):
        nodes = [node("a"), node("b"), {"metadata": {"name": "cpu", "labels": {}}}]
        whole = self.imported("k8s", json.dumps({"items": nodes}))
        self.assertEqual(whole["nodes"][0], {"count": 2, "per_node": 8, "device": "H100-SXM-80GB"})
        self.assertEqual(whole["hosts"], ["a", "b"])
        # The instance type knows the network.
        nodes = [node("a", "NVIDIA-A100-SXM4-80GB", instance="p4de.24xlarge")]
        whole = self.imported("k8s", json.dumps({"items": nodes}))
        self.assertEqual(whole["levels"][1]["bw"], "6.25GB/s")

    def test_kubernetes_nodes_that_cannot_be_planned(self):
        cases = ((UNSUPPORTED, [node("a"), node("b", "NVIDIA-A100-SXM4-40GB", memory="40960")],
                  "several kinds"),
                 (INFEASIBLE, [node("a", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb")], "slices"),
                 (BAD_INPUT, [node("a", "Imaginary-9000")], "Imaginary-9000"),
                 (BAD_INPUT, [{"metadata": {"name": "cpu"}}], "no node has GPUs"),
                 (BAD_INPUT, [3], "no node has GPUs"), (BAD_INPUT, {}, "/items"))
        for code, items, says in cases:
            with self.subTest(says=says):
                self.write("source.txt", {"items": items})
                self.refused(code, "cluster", "import", "k8s", "source.txt", "-o", "made.json",
                             says=(says,))
        self.refused(BAD_INPUT, "cluster", "import", "k8s", self.write("source.txt", "{"))

    def test_unknown_sources(self):
        self.refused(USAGE, "cluster", "import", "guess", self.write("source.txt", ""))
        self.refused(BAD_INPUT, "cluster", "import", "slurm", "nowhere.conf", "--node", "p5.48xlarge")

    # This host.

    def test_detect_without_gpus(self):
        result = self.tool("cluster", "detect", environment={"PATH": str(self.folder)})
        self.assertIn("no GPU here", result.err)
        self.assertIn("x cpu", result.out)

    def test_detect_with_gpus(self):
        path = self.fake_smi("NVIDIA GeForce RTX 4090, 24564, 400, [N/A]\n" * 2)
        self.tool("cluster", "detect", "-o", "made.json", environment=path)
        whole = self.shown("made.json")
        self.assertEqual(whole["nodes"][0], {"count": 1, "per_node": 2, "device": "RTX4090"})
        self.assertEqual(whole["devices"]["RTX4090"]["memory"], "24564MiB")
        path = self.fake_smi("NVIDIA H100 80GB HBM3, 81559, 5, Disabled\n" * 4,
                             MATRIX.format(a="NV18", b="NV18"))
        self.tool("cluster", "detect", "-o", "made.json", environment=path)
        self.assertEqual(self.shown("made.json")["levels"][0]["bw"], "450GB/s")

    def test_products_are_the_devices_that_they_name(self):
        for product, memory, device in (
                ("NVIDIA A100-SXM4-40GB", 40960, "A100-SXM4-40GB"),
                ("NVIDIA A100-SXM4-80GB", 81920, "A100-SXM-80GB"),
                ("NVIDIA A100 80GB PCIe", 81920, "A100-PCIe-80GB"),
                ("NVIDIA H100 PCIe", 81559, "H100-PCIe-80GB"),
                ("NVIDIA H100 NVL", 95830, "H100-NVL-94GB"),
                ("NVIDIA H200", 143771, "H200-SXM5-141GB"),
                ("NVIDIA B200", 183359, "B200-SXM"), ("NVIDIA GB200", 189471, "GB200"),
                ("Tesla V100-SXM2-32GB", 32510, "V100-SXM2-32GB"), ("Tesla T4", 15360, "T4"),
                ("NVIDIA L4", 23034, "L4"), ("NVIDIA L40S", 46068, "L40S"),
                ("NVIDIA RTX A6000", 49140, "RTXA6000"), ("NVIDIA A10G", 23028, "A10G"),
                ("NVIDIA GeForce RTX 3090", 24576, "RTX3090")):
            with self.subTest(product=product):
                path = self.fake_smi(f"{product}, {memory}, 0, [N/A]\n")
                self.tool("cluster", "detect", "-o", "made.json", environment=path)
                self.assertEqual(self.shown("made.json")["nodes"][0]["device"], device)

    def test_detect_that_cannot(self):
        for query, code in (("", BAD_INPUT), ("no devices were found\n", BAD_INPUT),
                            ("NVIDIA H100, x, 1\n", BAD_INPUT), ("NVIDIA H100, 10, 20\n", BAD_INPUT),
                            ("Voodoo 2, 12, 0, [N/A]\n", BAD_INPUT),
                            ("NVIDIA L4, 23034, 0\nTesla T4, 15360, 0\n", UNSUPPORTED)):
            with self.subTest(query=query):
                path = self.fake_smi(query)
                self.refused(code, "cluster", "detect", "-o", "made.json", environment=path)
        path = self.fake_smi("")
        (self.folder / "fake/nvidia-smi").write_text("#!/bin/sh\nexit 9\n")
        self.refused(BAD_INPUT, "cluster", "detect", environment=path, says=("driver",))

    # Measured steps.

    def timed_plan(self, name, fix, cluster="2xp5.48xlarge"):
        self.write("config.json", llama())
        return self.document("plan", "config.json", "--seq-len", 4096, "--cluster", cluster,
                             "--global-batch", 64, "--target", "megatron", "--fix", fix,
                             "-o", name)["prediction"]["step_seconds"]

    WHOLE = "tp=8,pp=1,dp=2,cp=1,ep=1,vpp=1,zero=1,recompute=none,micro_batch=4"
    OTHER = "tp=1,pp=4,dp=4,cp=1,ep=1,vpp=1,zero=1,recompute=selective,micro_batch=1"

    def test_one_measured_step_is_met(self):
        seconds = self.timed_plan("a.json", self.WHOLE)
        for factor in (0.9, 1.25):
            with self.subTest(factor=factor):
                self.tool("cluster", "calibrate", "2xp5.48xlarge", "--measured",
                          f"a.json={seconds * factor}", "-o", "own.json")
                again = self.document("simulate", "a.json", "--cluster", "own.json")
                self.assertAlmostEqual(again["step_seconds"] / (seconds * factor), 1, delta=0.01)
        made = self.document("cluster", "show", "own.json")
        self.assertIn("1 measured step", made["provenance"]["calibration"])
        self.assertEqual(made["calibration"]["steps"][0]["measured_seconds"], seconds * 1.25)

    def test_the_factor_of_a_slow_part_is_found(self):
        """Measured on a cluster whose NVLink gives 60 %: links move, compute does not."""
        slow = self.write("slow.json", {"schema": "monarch.cluster/1", "extends": "2xp5.48xlarge",
                                        "calibration": {"links": 0.6}})
        measured = []
        for name, fix in (("a.json", self.WHOLE), ("b.json", self.OTHER)):
            self.timed_plan(name, fix)
            seconds = self.document("simulate", name, "--cluster", slow)["step_seconds"]
            measured += ["--measured", f"{name}={seconds}"]
        made = self.document("cluster", "calibrate", "2xp5.48xlarge", *measured)["calibration"]
        self.assertAlmostEqual(made["links"], 0.6, delta=0.1)
        self.assertAlmostEqual(made["compute"], 1, delta=0.02)

    def test_measured_steps_of_nonsense(self):
        self.timed_plan("a.json", self.WHOLE)
        for text in ("a.json", "a.json=", "a.json=x", "a.json=0", "a.json=-1", "a.json=inf",
                     "a.json=nan", "a.json=1e9", "=1"):
            with self.subTest(text=text):
                self.refused(USAGE if text != "=1" else BAD_INPUT, "cluster", "calibrate",
                             "2xp5.48xlarge", "--measured", text, "-o", "own.json")
        self.refused(BAD_INPUT, "cluster", "calibrate", "2xp5.48xlarge", "--measured", "nowhere=1")
        self.refused(INFEASIBLE, "cluster", "calibrate", "p5.48xlarge", "--measured", "a.json=7",
                     "-o", "own.json", says=("16 devices of 8",))
        self.refused(USAGE, "cluster", "calibrate", "p5.48xlarge")


if __name__ == "__main__":
    main()
