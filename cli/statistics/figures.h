// The figures of one traced machine: written as lines for a reader or as a tree for programs, and
// read back from that tree. `-v` reports them at the end, `ringside stats` while a trace runs.
// Does not: count (providers/tracer/trace_statistics.h), or know where they are kept
// (figures_file.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/structured_writer.h"
#include "providers/tracer/trace_statistics.h"

namespace ringside::cli {

struct Figures {
  std::string machine{};                       // its name; empty: none is traced
  std::uint64_t drops = 0;                     // of records and aggregations, of all kinds
  std::vector<std::string> drops_by_clause{};  // lines for -v only
  providers::TraceStatistics trace{};
};

/// The counts, a line each.
std::vector<std::string> figures_lines(const Figures& figures);
/// How long traps waited, drawn as quantize() is; empty where there were none.
std::string waits_drawing(const providers::WaitHistogram& waits);

/// docs/output.md describes the fields.
Tree figures_tree(const Figures& figures);
/// Empty unless the tree is one of those.
std::optional<Figures> figures_of(const Tree& tree);

}  // namespace ringside::cli
