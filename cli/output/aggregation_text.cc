// In this file, top to bottom: keys, plain lines, agghist, aggpack, the choice among them.
#include "cli/output/aggregation_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "cli/output/distribution.h"

namespace ringside::cli {
namespace {

using dif::AggregateFunction;
using dif::ValueKind;
using Rows = std::vector<Aggregations::Row>;

constexpr int kKeyWidth = 50;
constexpr std::size_t kValueWidth = 16;
constexpr std::size_t kLeastKeyWidth = 16;

/// A stack on one line: its frames with blanks between them.
std::string frames_text(const Value& stack, const CodeNames& names) {
  std::string lines, text;
  append_stack(lines, stack, 0, 0, names);
  for (const char c : lines) {
    if (c != '\n') {
      text += c;
    } else if (!text.empty()) {
      text += ' ';
    }
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

std::string field_text(const Value& key, const CodeNames& names) {
  if (key.type.kind == ValueKind::KernelStack || key.type.kind == ValueKind::UserStack) {
    return frames_text(key, names);
  }
  if (key.type.kind > ValueKind::Void) return code_text(key, names);
  std::string text;
  append_column(text, key, ColumnStyle{true, false, 0, 0}, names);
  return text;
}

/// The key's fields on one line, for histograms and tables.
std::string key_text(std::span<const Value> keys, const CodeNames& names) {
  std::string text;
  for (const Value& key : keys) {
    if (!text.empty()) text += ' ';
    text += field_text(key, names);
  }
  return text;
}

void append_lines(std::string& out, const Rows& rows, const Settings& settings,
                  const CodeNames& names) {
  const ColumnStyle style{false, false, kKeyWidth, settings.stack_indent};
  for (const auto& row : rows) {
    for (const Value& key : row.keys) append_column(out, key, style, names);
    for (const AggregateValue& value : row.values) {
      if (is_distribution(value.definition->function)) {
        append_distribution(out, value, bar_style(settings));
      } else {
        out += ' ';
        append_padded_number(out, scalar_value(value), kValueWidth);
      }
    }
    out += '\n';
  }
}

std::size_t widest_key(const Rows& rows, const CodeNames& names) {
  std::size_t width = kLeastKeyWidth;
  for (const auto& row : rows) width = std::max(width, key_text(row.keys, names).size());
  return width;
}

void append_histogram(std::string& out, const Rows& rows, const Settings& settings,
                      const CodeNames& names) {
  const std::size_t width = widest_key(rows, names);
  BarScale scale;
  const BarStyle style = bar_style(settings);
  for (const auto& row : rows) scale.take(scalar_value(row.values[0]), style);
  append_histogram_header(out, width);
  for (const auto& row : rows) {
    append_right(out, key_text(row.keys, names), width);
    out += ' ';
    const std::int64_t count = scalar_value(row.values[0]);
    scale.append_bar(out, count, style);
    fmt::format_to(std::back_inserter(out), " {:<9}\n", count);
  }
}

/// The buckets that any row shows, so that the lines can be compared.
std::pair<std::size_t, std::size_t> common_range(const Rows& rows,
                                                 const std::vector<std::vector<Bucket>>& buckets) {
  auto range = shown_buckets(*rows[0].values[0].definition, buckets[0]);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const auto [first, last] = shown_buckets(*rows[i].values[0].definition, buckets[i]);
    range = {std::min(range.first, first), std::max(range.second, last)};
  }
  return range;
}

void append_packed(std::string& out, const Rows& rows, const Settings& settings,
                   const CodeNames& names) {
  std::vector<std::vector<Bucket>> buckets;
  for (const auto& row : rows) {
    buckets.push_back(buckets_of(*row.values[0].definition, row.values[0].words));
    if (buckets.back().empty()) return;
  }
  const auto [first, last] = common_range(rows, buckets);
  const bool keyed = !rows[0].keys.empty();
  const std::size_t width = keyed ? widest_key(rows, names) : 0;
  const std::string low = buckets[0][first].label, high = buckets[0][last].label;
  const std::size_t low_width = std::max<std::size_t>(low.size(), 3);
  const std::size_t high_width = std::max<std::size_t>(high.size(), 3);
  fmt::format_to(std::back_inserter(out), "\n{:>{}}{}{:>{}} .{:-<{}}. {:<{}} | count\n",
                 keyed ? "key" : "", width, keyed ? " " : "", "min", low_width, "",
                 last - first + 1, "max", high_width);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    BarScale scale;
    std::uint64_t together = 0;  // increments of any size: it may wrap
    for (const Bucket& bucket : buckets[i]) {
      scale.take(bucket.count, bar_style(settings));
      together += static_cast<std::uint64_t>(divided(bucket.count, rows[i].values[0].normal));
    }
    if (keyed) {
      append_right(out, key_text(rows[i].keys, names), width);
      out += ' ';
    }
    append_right(out, low, low_width);
    out += " :";
    for (std::size_t at = first; at <= last; ++at) {
      append_packed_cell(out, buckets[i][at].count, scale.total, settings.utf8);
    }
    fmt::format_to(std::back_inserter(out), ": {:<{}} | {}\n", high, high_width,
                   static_cast<std::int64_t>(together));
  }
}

}  // namespace

void append_aggregations(std::string& out, const Aggregations& table,
                         std::span<const std::uint32_t> aggregations, const Settings& settings,
                         const CodeNames& names) {
  const Rows rows = table.rows(aggregations, settings);
  if (rows.empty()) return;
  if (aggregations.size() == 1) {
    const AggregateFunction function = rows[0].values[0].definition->function;
    const bool counts = function == AggregateFunction::Count || function == AggregateFunction::Sum;
    if (settings.aggregation_histogram && counts) {
      return append_histogram(out, rows, settings, names);
    }
    if (settings.aggregation_pack && is_distribution(function)) {
      return append_packed(out, rows, settings, names);
    }
  }
  append_lines(out, rows, settings, names);
}

}  // namespace ringside::cli
