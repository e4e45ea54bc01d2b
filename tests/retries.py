"""Failed tests that run once more, after all others.

QEMU's translator loses a guest now and then, and the machines are shared: a test may fail for what is
not ours. A test that fails twice fails. One that passes the second time counts as passed; what it said
when it failed stands in the output, and its name at the end of it, since the cause may be ours after all.
"""

import sys


class Retries:
    """So many at most: more failures than that are no chance."""

    def __init__(self, most=0):
        self.most = most
        self.names = []  # of what has run again

    def __call__(self, name, count, again):
        """The Count of the test of that name: `count`, or what again() returns if that has failures."""
        if not count.failed or len(self.names) >= self.most:
            return count
        self.names.append(name)
        print(f"run: {name} failed: it runs again", file=sys.stderr, flush=True)
        return again()

    def tell(self):
        """Names what has run again, if anything has."""
        if self.names:
            print(f"run: failed at first, see above: {', '.join(self.names)}", file=sys.stderr, flush=True)
