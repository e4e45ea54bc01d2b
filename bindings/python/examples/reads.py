#!/usr/bin/env python3
"""Draws what a guest's processes read: reads.py TARGET PICTURE [SECONDS]

A cell begins at each "# %%", as notebooks and editors have it. Needs python3-matplotlib.
"""
# %% The machine, and how long to look at it.
import collections
import sys

import matplotlib

matplotlib.use("Agg")  # pictures go to a file, not to a screen
import matplotlib.pyplot as plt

import ringside

target, picture = sys.argv[1:3]
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 5.0

# %% Trace: a record for each read with its size, and how long reads take as a distribution.
PROGRAM = """
syscall::read:entry { self->began = timestamp; }
syscall::read:return /self->began && (int)arg1 > 0/ {
    trace(execname); trace(arg1);
    @[execname] = quantize(timestamp - self->began);
}
syscall::read:return { self->began = 0; }
"""
bytes_by_time = collections.defaultdict(lambda: ([], []))
with ringside.attach(target) as vm:
    trace = vm.trace(PROGRAM, seconds=seconds, bufsize="16m")
    for record in trace:
        name, size = record.values
        times, sizes = bytes_by_time[name]
        times.append(record.timestamp)
        sizes.append(size)
    name_of_machine = vm.name
if trace.drops:
    print(f"the picture lacks {sum(drop['count'] for drop in trace.drops)} reads", file=sys.stderr)

# %% Draw: the sizes over time at the top, the distributions below.
figure, (over_time, spread) = plt.subplots(2, 1, figsize=(9, 7), constrained_layout=True)
first = min((times[0] for times, _ in bytes_by_time.values()), default=0)
for name, (times, sizes) in sorted(bytes_by_time.items()):
    over_time.scatter([(time - first) / 1e9 for time in times], sizes, s=4, label=name)
over_time.set(title=f"Reads in {name_of_machine}", xlabel="seconds", ylabel="bytes", yscale="symlog")
for name, buckets in sorted(trace.aggregations.get("_", {}).items()):
    spread.step([bucket.value for bucket in buckets], [bucket.count for bucket in buckets],
                where="post", label=name)
spread.set(xlabel="nanoseconds in read()", ylabel="reads", xscale="symlog")
for axes in (over_time, spread):
    if axes.get_legend_handles_labels()[0]:
        axes.legend()
figure.savefig(picture)
print(f"{picture}: {sum(len(times) for times, _ in bytes_by_time.values())} reads")
