#!/usr/bin/env python3
"""Plants violations and demands that check_layers.py finds each one, and nothing else."""

import pathlib
import re
import tempfile
import unittest

import check_layers


class CheckLayers(unittest.TestCase):
    def why(self, path, include):
        """The complaints about a tree with one file and one include in it."""
        with tempfile.TemporaryDirectory() as root:
            file = pathlib.Path(root, path)
            file.parent.mkdir(parents=True)
            file.write_text(f"// A comment.\n#include {include}\n")
            violations, files = check_layers.check(root)
        self.assertEqual(files, 1)
        for where, line, _ in violations:
            self.assertEqual((where, line), (path, 2))
        return [text for _, _, text in violations]

    def test_what_each_row_allows(self):
        for path, include in (
                ("vmm/base/a.h", '"vmm/base/b.h"'), ("vmm/base/a.h", "<vector>"),
                ("disasm/zydis.h", "<Zydis/Zydis.h>"), ("dif/d/parse.cc", '"dif/program.h"'),
                ("vmm/qemu/a.cc", '"vmm/machine.h"'), ("vmm/kvm/a.cc", '"vmm/kvm/boot/a.h"'),
                ("vmm/shim.cc", '"guest-shim/mailbox_abi.h"'), ("vmm/kvm/a.cc", "<linux/kvm.h>"),
                ("vmm/linux/btf.cc", '"vmm/page_walk.h"'), ("dif/d/lexer.l", '"grammar.h"'),
                ("vmm/kvm/vcpu/a.cc", '"vmm/kvm/a.h"'), ("vmm/qemu/a.cc", '"vmm/kvm/host/a.h"'),
                ("providers/functions/fbt.cc", '"providers/trap_points/trap_point_table.h"'),
                ("providers/functions/fbt.cc", '"vmm/linux/kernel.h"'), ("cli/a.cc", '"dif/d/compile.h"'),
                ("vmm/a_test.cc", '"tests/fakes/fake_guest.h"')):
            with self.subTest(path=path, include=include):
                self.assertEqual(self.why(path, include), [])

    def test_what_each_row_forbids(self):
        for path, include, part in (
                ("vmm/base/a.h", '"vmm/machine.h"', "vmm/base may not include vmm"),
                ("vmm/base/a.h", '"dif/program.h"', "vmm/base may not include dif"),
                ("guest-shim/a.c", '"vmm/base/check.h"', "guest-shim may not include vmm/base"),
                ("disasm/a.cc", '"dif/insn.h"', "disasm may not include dif"),
                ("providers/a.cc", "<capstone/capstone.h>", "stays inside disasm"),
                ("dif/engine.cc", '"dif/d/ast.h"', "dif may not include dif/d"),
                ("dif/a.cc", '"vmm/guest_memory.h"', "dif may not include vmm"),
                ("dif/d/a.cc", '"vmm/linux/kernel.h"', "dif/d may not include vmm/linux"),
                ("vmm/a.cc", '"vmm/linux/kernel.h"', "vmm may not include vmm/linux"),
                ("vmm/a.cc", '"providers/provider.h"', "vmm may not include providers"),
                ("vmm/a.cc", '"guest-shim/other.h"', "vmm may not include guest-shim"),
                ("vmm/linux/a.cc", '"dif/program.h"', "vmm/linux may not include dif"),
                ("providers/a.cc", '"dif/d/compile.h"', "providers may not include dif/d"),
                ("providers/trap_points/a.cc", '"cli/options.h"', "may not include cli"),
                ("providers/trap_points/a.cc", '"providers/provider.h"', "may not include providers"),
                ("vmm/a.cc", '"vmm/qemu/a.h"', "vmm may not include vmm/qemu"),
                ("vmm/qemu/a.cc", '"vmm/kvm/a.h"', "vmm/qemu may not include vmm/kvm"),
                ("vmm/kvm/boot/a.cc", '"vmm/kvm/api/kvm_vm.h"', "boot may not include vmm/kvm"),
                ("vmm/kvm/devices/a.cc", "<linux/kvm.h>", "stays inside vmm/kvm"),
                ("cli/a.cc", '"vmm/kvm/kvm_machine.h"', "cli may not include vmm/kvm"),
                ("cli/a.cc", "<linux/kvm.h>", "stays inside vmm/kvm"),
                ("vmm/a.cc", '"machine.h"', "includes are written from the root"),
                ("vmm/a.cc", '"images/x.h"', "is in no folder of the layer table"),
                ("vmm/a.cc", '"tests/fakes/fake_guest.h"', "is in no folder")):
            with self.subTest(path=path, include=include):
                complaints = self.why(path, include)
                self.assertEqual(len(complaints), 1, complaints)
                self.assertIn(part, complaints[0])

    def test_folders_do_not_include_each_other_in_a_circle(self):
        with tempfile.TemporaryDirectory() as root:
            for path, include in (("dif/a/one.h", "dif/b/two.h"), ("dif/b/two.h", "dif/c/three.h"),
                                  ("dif/c/three.h", "dif/b/four.h"), ("dif/b/four.h", "dif/five.h"),
                                  ("dif/c/three_test.cc", "dif/a/one.h"), ("dif/five.h", "dif/six.h"),
                                  ("dif/six.h", "dif/five.h")):
                file = pathlib.Path(root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(f'#pragma once\n#include "{include}"\n')
            violations, _ = check_layers.check(root)
        self.assertEqual(violations, [
            ("dif/b/two.h", 2, "folders in a circle: dif/b -> dif/c -> dif/b"),
            ("dif/c/three.h", 2, "folders in a circle: dif/c -> dif/b -> dif/c")])

    def test_a_header_with_foreign_types_is_private_to_its_folder(self):
        with tempfile.TemporaryDirectory() as root:
            for path, include in (("disasm/inner.h", "<Zydis/Zydis.h>"),
                                  ("disasm/user.cc", '"disasm/inner.h"'),
                                  ("vmm/kvm/host/inner.h", "<linux/kvm.h>"),
                                  ("vmm/kvm/user.cc", '"vmm/kvm/host/inner.h"'),
                                  ("providers/user.cc", '"disasm/inner.h"')):
                file = pathlib.Path(root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(f"#include {include}\n")
            violations, _ = check_layers.check(root)

        self.assertEqual(violations, [("providers/user.cc", 1,
                                       '"disasm/inner.h" shows what stays inside disasm')])

    def test_an_address_is_not_added_to_as_a_bare_number_but_in_tests(self):
        with tempfile.TemporaryDirectory() as root:
            for path in ("vmm/a.cc", "vmm/a.h", "vmm/a_test.cc", "vmm/a_for_tests.h",
                         "vmm/shim/fake_guest.h", "vmm/kvm/testing/a.h"):
                file = pathlib.Path(root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("x = at.raw() - 1;\ny = at.raw() +\n    1;\n++at.raw();\n")
            violations, _ = check_layers.check(root)

        self.assertEqual([(path, line) for path, line, _ in violations],
                         [("vmm/a.cc", 2), ("vmm/a.h", 2)])

    def test_no_comment_begins_with_what(self):
        refused = {"dif/a.cc": "/// $ it does.\n", "vmm/a.h": "int x;  // $ it is.\n",
                   "guest-shim/a.S": "/* $ it is. */\n", "images/a.c": "/* One line.\n * $ comes next. */\n",
                   "examples/a.d": "/*\n * $ it shows.\n */\n", "tests/a.py": '\n"""$ it tests."""\n',
                   "tests/run": "\n    # $ it runs.\n", "vmm/meson.build": "# $ it builds.\n"}
        allowed = {"dif/b.cc": "// $ever it does.\n// It says so: $ it does.\nenum class $ { A };\n",
                   "docs/a.c": "// $ nobody reads.\n", "tests/a.txt": "# $ it prints.\n"}
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**refused, **allowed}.items():
                file = pathlib.Path(root, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text.replace("$", "What"))
            violations, files = check_layers.check(root)

        lines = {path: 1 for path in refused} | {"images/a.c": 2, "examples/a.d": 2, "tests/a.py": 2, "tests/run": 2}
        self.assertEqual({path: line for path, line, _ in violations}, lines)
        self.assertEqual(len(violations), len(refused))
        self.assertEqual(files, 4)

    def test_an_address_is_not_made_by_taking_from_one_as_a_bare_number(self):
        text = ("GuestVirt entry(node.raw() - at.list);\n"
                "visit(GuestVirt(node->raw() -\n  (a + b)));\n"
                "GuestPhys first{f(x, y) + last.raw() - 1};\n"
                "auto end = GuestVirt(at + GuestVirt(base.raw() - 1).offset_from(base));\n"
                "size = end.raw() - begin.raw();\n"
                "GuestVirt begin(at); size = end.raw() - begin.raw();\n"
                "head->raw() + 1;\n"
                "GuestVirt f(GuestVirt at) {\n  return g(at.raw() - 1);\n}\n")
        self.assertEqual(check_layers.bare_sums("vmm/a.cc", text), [1, 2, 4, 5, 8])
        self.assertEqual(check_layers.bare_sums("vmm/a_test.cc", text), [])

    def test_the_table_is_that_of_the_architecture(self):
        """ARCHITECTURE.md has single headers in words: "of `vmm/qemu` ... the launchers only"."""
        text = pathlib.Path(check_layers.__file__).parents[1].joinpath("ARCHITECTURE.md").read_text()
        rows = dict(re.findall(r"^\| `([\w/-]+)` \| .* \| (.*) \| .* \|$", text, re.MULTILINE))
        for layer, allowed in check_layers.LAYERS.items():
            with self.subTest(layer):
                told = rows[layer].split("; of ")[0].replace("(not `dif/d`)", "")
                headers = {*check_layers.LAUNCHERS, *check_layers.ATTACHERS}
                self.assertEqual(set(re.findall(r"`([^`]+)`", told)), set(allowed) - headers)

    def test_an_empty_tree_is_no_success(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertEqual(check_layers.check(root), ([], 0))


if __name__ == "__main__":
    unittest.main()
