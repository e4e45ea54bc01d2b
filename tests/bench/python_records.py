#!/usr/bin/env python3
"""How many records a second a loop in Python takes: python_records.py TARGET [RECORDS]

A timer's probe makes 200 records at a time, so that the guest's own speed does not matter. A record has
a text and two values. Measured is the processor time of the loop's thread, which takes the records from
the buffers, makes values of them, and runs the loop's body; beside it the time that passed.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "build/bindings/python"))
import ringside  # noqa: E402

CLAUSE = 'profile:::tick-1ms { printf("%s %d", "a process", 4711); }\n'
PER_FIRING = 200


def measure(vm, records, use):
    """Records a second of processor time, and of time; how many were dropped."""
    trace = vm.trace(CLAUSE * PER_FIRING, bufsize="64m", switchrate="20hz")
    next(trace)
    taken, spent, began = 0, time.thread_time(), time.monotonic()
    for record in trace:
        use(record)
        taken += 1
        if taken == records:
            break
    spent, passed = time.thread_time() - spent, time.monotonic() - began
    trace.close()
    return taken / spent, taken / passed, sum(drop["count"] for drop in trace.drops)


def main():
    records = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    with ringside.attach(sys.argv[1]) as vm:
        for name, use in (("an empty body", lambda record: None),
                          ("text and values", lambda record: (record.text, record.values))):
            by_processor, by_clock, drops = measure(vm, records, use)
            print(f"{name}: {by_processor:,.0f} records a second of processor time, "
                  f"{by_clock:,.0f} a second, {drops} drops")


if __name__ == "__main__":
    main()
