"""meson's own lists of a build folder: its targets, its tests."""

import json
import subprocess


def introspect(build, what):
    """The list "targets" or "tests"."""
    return json.loads(subprocess.run(["meson", "introspect", f"--{what}", build], check=True,
                                     capture_output=True).stdout)


def suites_of(test):
    """The names of a test's suites, without the project's."""
    return {name.rpartition(":")[2] for name in test["suite"]}
