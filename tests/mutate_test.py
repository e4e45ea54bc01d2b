#!/usr/bin/env python3
"""The changes that tests/mutate makes, on sources made up for the purpose."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("mutate", str(pathlib.Path(__file__).with_name("mutate")))
mutate = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", LOADER))
sys.modules["mutate"] = mutate
LOADER.exec_module(mutate)


def changed(text):
    """The source after each of its mutants."""
    return [text[:m.offset] + m.new + text[m.offset + len(m.old):] for m in mutate.mutants_of("x.cc", text)]


class Mutants(unittest.TestCase):
    def test_comparisons_and_templates(self):
        self.assertEqual(changed("  return Map<int, T>{} < b;\n"), ["  return Map<int, T>{} <= b;\n"])
        self.assertEqual(changed("  return a == b && !c;\n"),
                         ["  return a != b && !c;\n", "  return a == b || !c;\n", "  return a == b && c;\n"])

    def test_numbers(self):
        self.assertEqual(changed("  return 0x1fU;\n"), ["  return 0x20U;\n"])
        self.assertEqual(changed("  return 1'000;\n"), ["  return 1001;\n"])
        self.assertEqual(changed("  return v2.x;\n"), [])

    def test_what_is_no_code(self):
        self.assertEqual(changed('#define A 1\n// a == 1\nconstexpr char kX[] = "a == 1";  /* 1 */\n'), [])
        self.assertEqual(changed("  static_assert(sizeof(X) == 8);\n"), [])
        self.assertEqual(changed("  return c == '1';\n"), ["  return c != '1';\n"])

    def test_statements(self):
        self.assertEqual(changed("{\n  grow(a);\n  T at = f(b);\n  if (c) return d;\n"
                                 "  std::vector<int> e(f);\n}\n"),
                         ["{\n  ;\n  T at = f(b);\n  if (c) return d;\n  std::vector<int> e(f);\n}\n",
                          "{\n  grow(a);\n  T at = f(b);\n  ;\n  std::vector<int> e(f);\n}\n"])

    def test_part_of_a_statement_stays(self):
        self.assertEqual(changed("{\n  call(a,\n       b);\n}\n"), [])

    def test_names_do_not_know_lines(self):
        first, second = (list(mutate.mutants_of("x.cc", text)) for text in ("a + b + c;\n", "\na + b + c;\n"))
        self.assertEqual([m.name() for m in first[:2]], [m.name() for m in second[:2]])
        self.assertEqual(len({m.name() for m in first}), len(first))

    def test_owners(self):
        self.assertEqual(mutate.owners_of("dif/evaluate/memory.cc"), ["dif/dif_test"])
        self.assertEqual(mutate.owners_of("dif/evaluator.cc"), [])
        self.assertTrue(all(mutate.owners_of(path) for path in mutate.sources([])))
        self.assertIn("providers/tracer/probe_armer.cc", mutate.sources([]))

    def test_one_seed_draws_the_same(self):
        self.assertEqual(mutate.draw(["dif/verify"], 1), mutate.draw(["dif/verify"], 1))
        self.assertNotEqual(mutate.draw(["dif/verify"], 1), mutate.draw(["dif/verify"], 2))


if __name__ == "__main__":
    unittest.main()
