"""Pictures of a real trace: folded stacks and the flame graph have the aggregation's own counts, a heat map
has the distribution's, and a file for Perfetto a slice for each call, for a workload that makes a known number
of reads."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

import ringside

sys.path.append(str(ringside.ROOT / "tests"))
import perfetto_trace  # pylint: disable=wrong-import-position

READS = 2000
SVG = "{http://www.w3.org/2000/svg}"
PROGRAM = """
fbt::vfs_read:entry /execname == "workload"/ {
  @stacks[execname, ustack(), stack()] = count();
  @calls = count();
  @sizes = quantize(arg2);
}
tick-200ms { printa(@sizes); }
"""
SLICES = """
syscall::read:entry, syscall::read:return /execname == "workload"/ { trace(arg0); }
syscall::read:return /execname == "workload"/ { @reads[execname] = count(); }
fbt::vfs_read:entry, fbt::vfs_read:return /execname == "workload"/ {}
sched:::on-cpu, sched:::off-cpu {}
tick-200ms { printa(@reads); }
END { printf("that is all\\n"); }
"""


def records(path):
    """The records of -O jsonl; what the workload says itself stands elsewhere."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def last(all_records, name):
    """The entries of an aggregation as the trace's end shows them."""
    items = next(each for each in all_records if each["name"] == "AGGREGATIONS")["output"]
    return next(item["aggregation-data"] for item in items if item["aggregation-name"] == name)


def number(text):
    """The first number of a title, which has commas."""
    return int(re.search(r"\d[\d,]*", text)[0].replace(",", ""))


class Pictures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def draw(self, *words):
        return subprocess.run([ringside.binary(), "draw", *map(str, words)], capture_output=True, text=True,
                              timeout=ringside.TIMEOUT, check=True).stdout

    def test_pictures_of_saved_output_have_its_counts(self):
        for image, cpus in ringside.GUESTS:
            with self.subTest(image=image, cpus=cpus):
                saved = pathlib.Path(self.folder.name, f"{image}-{cpus}.jsonl")
                outcome = ringside.run(PROGRAM, image=image, cpus=cpus, options=["-O", "jsonl", "-o", saved],
                                       command=f"workload --reads {READS}")
                traced = records(saved)
                calls = last(traced, "calls")[0]["count"]
                self.assertGreaterEqual(calls, READS, outcome)

                self.check_folded(self.draw("folded", saved), last(traced, "stacks"), calls)
                self.check_flame(self.draw("flame", saved), calls)
                self.check_heatmap(self.draw("heatmap", saved), last(traced, "sizes"))
                profile = json.loads(self.draw("speedscope", saved))["profiles"][0]
                self.assertEqual((sum(profile["weights"]), profile["endValue"]), (calls, calls))

    def check_folded(self, text, entries, calls):
        stacks = [re.fullmatch(r"workload;(.*) (\d+)", line) for line in text.splitlines()]
        self.assertTrue(all(stacks), text)
        self.assertEqual(sum(int(stack[2]) for stack in stacks), calls, text)
        # The kernel's frames, by the aggregation itself, lie over those of the process.
        most = max(entries, key=lambda entry: entry["count"])
        kernel = [frame["symbol"] for frame in reversed(most["keys"][2])]
        ends = [stack[1].split(";") for stack in stacks]
        self.assertIn([f"vmlinux`{name}" for name in kernel], [end[-len(kernel):] for end in ends], text)
        self.assertIn("vmlinux`ksys_read", {end[-1] for end in ends}, text)

    def check_flame(self, text, calls):
        boxes = [box for box in ElementTree.fromstring(text).iter(f"{SVG}g") if "data-n" in box.attrib]
        titles = [box.find(f"{SVG}title").text.split("\n") for box in boxes]
        self.assertEqual([name for name, _ in titles[:2]], ["all", "workload"])
        self.assertEqual([number(told) for _, told in titles[:2]], [calls, calls])
        reads = [box for box, (name, _) in zip(boxes, titles) if name == "vmlinux`ksys_read"]
        self.assertEqual(sum(int(box.get("data-n")) for box in reads), calls)
        widths = sum(float(box.find(f"{SVG}rect").get("width")) for box in reads)
        self.assertAlmostEqual(widths, 1180, delta=len(reads))

    def check_heatmap(self, text, entries):
        cells = [rect.find(f"{SVG}title").text.split("\n")
                 for rect in ElementTree.fromstring(text).iter(f"{SVG}rect") if rect.get("class").startswith("cell")]
        drawn = {}
        for bucket, _, count in cells:
            drawn[number(bucket)] = drawn.get(number(bucket), 0) + number(count)
        self.assertEqual(drawn, {each["value"]: each["count"] for each in entries[0]["buckets"] if each["count"]})

    def test_a_trace_draws_by_itself(self):
        picture = pathlib.Path(self.folder.name, "flame.svg")
        options = ["-O", "flame", "-o", picture]
        outcome = ringside.run(PROGRAM, options=options, command=f"workload --reads {READS}")

        root = ElementTree.parse(picture).getroot()
        told = [text.text for text in root.iter(f"{SVG}text") if "about" in text.get("class", "")]
        self.assertEqual(len(told), 1, outcome)
        self.assertGreaterEqual(number(told[0]), READS)

    def test_a_file_for_perfetto_has_a_slice_for_each_call(self):
        for image, cpus in ringside.GUESTS:
            with self.subTest(image=image, cpus=cpus):
                drawn = pathlib.Path(self.folder.name, f"{image}-{cpus}.pftrace")
                outcome = ringside.run(SLICES, image=image, cpus=cpus, options=["-O", "perfetto", "-o", drawn],
                                       command=f"workload --reads {READS} --read-size 7")
                self.check_slices(perfetto_trace.Trace(drawn.read_bytes()), cpus, outcome)

    def test_saved_output_with_threads_makes_the_same_file(self):
        saved = pathlib.Path(self.folder.name, "threads.jsonl")
        outcome = ringside.run(SLICES, options=["-O", "jsonl", "-x", "threads", "-o", saved],
                               command=f"workload --reads {READS} --read-size 7")
        drawn = saved.with_suffix(".pftrace")
        self.draw("perfetto", "-o", drawn, saved)
        self.check_slices(perfetto_trace.Trace(drawn.read_bytes()), 1, outcome)

    def test_a_file_for_perfetto_has_a_slice_for_each_request(self):
        drawn = pathlib.Path(self.folder.name, "requests.pftrace")
        outcome = ringside.run("io:::start, io:::done { trace(arg0); }", cpus=2, options=["-O", "perfetto", "-o", drawn],
                               command="workload --reads 256 --file /dev/loop0 --direct")
        requests = [each for each in perfetto_trace.Trace(drawn.read_bytes()).slices if each.name == "io"]
        self.assertEqual(len(requests), 256, outcome)
        for each in requests:
            self.assertRegex(each.track.name, r"^requests \d+$")
            self.assertEqual(each.notes["value"], each.notes["done value"])

    def check_slices(self, trace, cpus, outcome):
        """The trace's own count is that of the slices, each with one of the function inside."""
        reads = [each for each in trace.slices if each.name == "read"]
        inside = [each for each in trace.slices if each.name == "vfs_read" and each.depth == 1]
        counted = next(values[-1] for name, values in trace.counters().items() if name == "@reads[workload]")
        self.assertGreaterEqual(len(reads), READS, outcome)
        self.assertEqual((len(reads), len(inside)), (counted, counted), outcome)
        # The end has the result.
        self.assertEqual(sum(each.notes["return value"] == 7 for each in reads), READS)
        self.assertEqual({"value", "return value"}, {name for each in reads for name in each.notes})
        self.assertEqual({(each.track.kind, each.track.name, each.category) for each in reads},
                         {("thread", "workload", "syscall")})
        process = trace.tracks[reads[0].track.parent]
        self.assertRegex(process.name, r": workload$")
        vcpus = {f"vCPU {number}" for number in range(cpus)}
        ran = {each.name for each in trace.slices if each.track.name in vcpus}
        self.assertIn(f"workload {reads[0].track.tid}", ran)
        self.assertLessEqual(vcpus, set(trace.named("plain")))
        self.assertEqual([each.notes for each in trace.instants if each.name == "END"],
                         [{"message": "that is all"}])

    def test_a_program_without_stacks_ends_before_it_traces(self):
        outcome = ringside.run("BEGIN { @[execname] = count(); exit(0); }", machine=False, options=["-O", "flame"])

        self.assertEqual((outcome.status, outcome.stdout), (1, ""))
        self.assertRegex(outcome.stderr, r"^ringside: the program has nothing to draw; a picture needs a count\(\) or "
                                         r"sum\(\) whose key ends in stack\(\) or ustack\(\): .*\n$")


if __name__ == "__main__":
    unittest.main()
