#include "cli/statistics/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>

#include "cli/output/distribution.h"
#include "dif/program/aggregate_function.h"

namespace ringside::cli {
namespace {

using providers::TraceStatistics;
using providers::WaitHistogram;

/// A counter by its name in trees.
struct Counter {
  const char* name;
  std::uint64_t& (*in)(Figures& figures);
};

constexpr Counter kCounters[]{
    {"firings", [](Figures& f) -> std::uint64_t& { return f.trace.firings; }},
    {"recorded", [](Figures& f) -> std::uint64_t& { return f.trace.kernel.recorded; }},
    {"unwanted", [](Figures& f) -> std::uint64_t& { return f.trace.kernel.unwanted; }},
    {"misses", [](Figures& f) -> std::uint64_t& { return f.trace.kernel.misses; }},
    {"unfired", [](Figures& f) -> std::uint64_t& { return f.trace.kernel.unfired; }},
    {"drops", [](Figures& f) -> std::uint64_t& { return f.drops; }},
    {"armed", [](Figures& f) -> std::uint64_t& { return f.trace.kernel.armed; }},
    {"recording", [](Figures& f) -> std::uint64_t& { return f.trace.kernel.recording; }},
    {"jumps", [](Figures& f) -> std::uint64_t& { return f.trace.kernel.jumps; }},
    {"retired", [](Figures& f) -> std::uint64_t& { return f.trace.kernel.retired; }},
    {"disarmed", [](Figures& f) -> std::uint64_t& { return f.trace.disarmed; }},
    {"left_out", [](Figures& f) -> std::uint64_t& { return f.trace.left_out; }},
    {"skipped_ticks", [](Figures& f) -> std::uint64_t& { return f.trace.skipped_ticks; }},
    {"pauses", [](Figures& f) -> std::uint64_t& { return f.trace.pauses.count; }},
};

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::optional<std::uint64_t> number_in(const Tree& tree, const char* name) {
  const auto found = tree.find(name);
  if (found == tree.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

bool read_waits(const Tree& tree, WaitHistogram& waits) {
  const auto list = tree.find("waits");
  if (list == tree.end() || !list->is_array()) return false;
  for (const Tree& bucket : *list) {
    if (!bucket.is_object()) return false;
    const auto from = number_in(bucket, "from_ns"), count = number_in(bucket, "count");
    if (!from || !count) return false;
    waits.waits[static_cast<std::size_t>(std::bit_width(*from | 1)) - 1] = *count;
  }
  return true;
}

}  // namespace

std::vector<std::string> figures_lines(const Figures& figures) {
  const TraceStatistics& trace = figures.trace;
  std::vector<std::string> lines{fmt::format(
      "{} by {}{}{}{}; {} missed{}, {}{}", counted(trace.firings, "firing"),
      counted(trace.kernel.waits.total() + trace.kernel.recorded + trace.kernel.unwanted, "trap"),
      trace.kernel.recorded == 0 ? "" : fmt::format(", {} recorded", trace.kernel.recorded),
      trace.kernel.unwanted == 0
          ? ""
          : fmt::format(", {} left out by predicates in the guest", trace.kernel.unwanted),
      trace.kernel.unfired == 0 ? "" : fmt::format(", {} of no probe", trace.kernel.unfired),
      trace.kernel.misses,
      trace.kernel.dropped == 0 ? "" : fmt::format(" ({} by full rings)", trace.kernel.dropped),
      counted(figures.drops, "drop"),
      trace.skipped_ticks == 0
          ? ""
          : fmt::format(", {} left out", counted(trace.skipped_ticks, "tick")))};
  lines.push_back(fmt::format(
      "{} armed{}; {}{} retired since the guest changed its code, {} disarmed over budget",
      counted(trace.kernel.armed, "place"),
      trace.kernel.jumps == 0 ? "" : fmt::format(", {} by jumps", trace.kernel.jumps),
      trace.kernel.recording == 0 ? "" : fmt::format("{} recording, ", trace.kernel.recording),
      trace.kernel.retired, counted(trace.disarmed, "probe")));
  for (const auto& [why, places] : trace.kernel.why_waiting) {
    lines.push_back(fmt::format("{} not recorded: {}", counted(places, "place"), why));
  }
  lines.insert(lines.end(), figures.drops_by_clause.begin(), figures.drops_by_clause.end());
  if (!figures.machine.empty()) {
    lines.push_back("the guest stood still " + trace.pauses.describe() +
                    (trace.left_out == 0
                         ? ""
                         : fmt::format("; {} left out", counted(trace.left_out, "sample"))));
  }
  return lines;
}

std::string waits_drawing(const WaitHistogram& waits) {
  if (waits.total() == 0) return {};
  dif::Aggregation shape;
  shape.function = dif::AggregateFunction::Quantize;
  std::vector<std::int64_t> words(dif::kQuantizeBuckets);
  for (std::size_t n = 0; n + dif::kQuantizeZero + 1 < words.size() && n < waits.waits.size();
       ++n) {
    words[dif::kQuantizeZero + 1 + n] = static_cast<std::int64_t>(waits.waits[n]);
  }
  std::string text = "how long traps waited for ringside, in ns:";
  append_distribution(text, {.definition = &shape, .words = words}, {});
  return text;
}

Tree figures_tree(const Figures& figures) {
  Figures copy = figures;
  Tree tree;
  for (const Counter& counter : kCounters) tree[counter.name] = counter.in(copy);
  tree["stood_still_ns"] = static_cast<std::uint64_t>(figures.trace.pauses.total.count());
  tree["longest_pause_ns"] = static_cast<std::uint64_t>(figures.trace.pauses.longest.count());
  tree["waits"] = Tree::array();
  const auto& waits = figures.trace.kernel.waits.waits;
  for (std::size_t n = 0; n < waits.size(); ++n) {
    if (waits[n] == 0) continue;
    Tree bucket;
    bucket["from_ns"] = n == 0 ? 0 : std::uint64_t{1} << n;
    bucket["count"] = waits[n];
    tree["waits"].push_back(std::move(bucket));
  }
  return tree;
}

std::optional<Figures> figures_of(const Tree& tree) {
  if (!tree.is_object()) return std::nullopt;
  Figures figures;
  for (const Counter& counter : kCounters) {
    const auto number = number_in(tree, counter.name);
    if (!number) return std::nullopt;
    counter.in(figures) = *number;
  }
  const auto total = number_in(tree, "stood_still_ns"),
             longest = number_in(tree, "longest_pause_ns");
  if (!total || !longest || !read_waits(tree, figures.trace.kernel.waits)) return std::nullopt;
  figures.trace.pauses.total = std::chrono::nanoseconds(*total);
  figures.trace.pauses.longest = std::chrono::nanoseconds(*longest);
  return figures;
}

}  // namespace ringside::cli
