// In this file, top to bottom: keys, plain lines, agghist, aggpack, the choice among them.
#include "cli/output/aggregation_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <vector>

#include "cli/output/distribution.h"
#include "dif/program/aggregate_function.h"

namespace ringside::cli {
namespace {

using dif::AggregateFunction;
using dif::ValueKind;
using Rows = std::vector<Aggregations::Row>;

constexpr int kKeyWidth = 50;
constexpr std::size_t kValueWidth = 16;
constexpr std::size_t kFieldWidth = 16;  // of a key that is no small integer

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

std::string field_text(const Value& key, const CodeNames& names, bool escapes) {
  if (key.type.kind == ValueKind::KernelStack || key.type.kind == ValueKind::UserStack) {
    return frames_text(key, names);
  }
  if (key.type.kind > ValueKind::Void) return code_text(key, names);
  std::string text;
  append_column(text, key, ColumnStyle{true, false, 0, 0, escapes}, names);
  return text;
}

/// The columns of a key's field, which a blank precedes.
std::size_t field_width(const Value& key) {
  const bool plain = key.type.kind == ValueKind::Integer || key.type.kind == ValueKind::Bytes;
  const std::size_t width = plain ? column_width(key.bytes.size()) : 0;
  return width != 0 ? width : kFieldWidth;
}

std::size_t key_width(std::span<const Value> keys) {
  std::size_t width = 0;
  for (const Value& key : keys) width += 1 + field_width(key);
  return width;
}

/// The key's fields on one line, for histograms and tables.
void append_key(std::string& out, std::span<const Value> keys, const CodeNames& names,
                bool escapes) {
  for (const Value& key : keys) {
    out += ' ';
    append_right(out, field_text(key, names, escapes), field_width(key));
  }
}

void append_lines(std::string& out, const Rows& rows, const Settings& settings,
                  const CodeNames& names, bool escapes) {
  const ColumnStyle style{false, false, kKeyWidth, settings.stack_indent, escapes};
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

void append_histogram(std::string& out, const Rows& rows, const Settings& settings,
                      const CodeNames& names, bool escapes) {
  BarScale scale;
  scale.make_whole();
  const BarStyle style = bar_style(settings);
  for (const auto& row : rows) scale.take(scalar_value(row.values[0]));
  const bool keyed = !rows[0].keys.empty();
  const std::size_t width = keyed ? key_width(rows[0].keys) : kFieldWidth;
  append_histogram_header(out, width);
  for (const auto& row : rows) {
    std::string key;
    append_key(key, row.keys, names, escapes);
    append_right(out, key, width);
    out += ' ';
    const std::int64_t count = scalar_value(row.values[0]);
    scale.append_bar(out, count, style);
    fmt::format_to(std::back_inserter(out), " {:<9}\n", count);
  }
}

/// The cells of all rows, so that they can be compared, and the columns of the labels beside them.
struct PackedLayout {
  std::size_t first = 0, last = 0;
  std::size_t low_width = 4, high_width = 4;
};

/// Linear distributions show every bucket. Others show those with data, and one beside them;
/// nothing below 0 where all data is at 0 or above.
PackedLayout packed_layout(const dif::Aggregation& definition,
                           const std::vector<std::vector<Bucket>>& rows) {
  if (definition.function == AggregateFunction::Lquantize) {
    return {0, rows[0].size() - 1, 7, 8};
  }
  std::vector<Bucket> all = rows[0];
  for (Bucket& bucket : all) bucket.count = 0;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) all[i].count |= row[i].count;
  }
  PackedLayout layout;
  std::tie(layout.first, layout.last) = shown_buckets(definition, all);
  const bool quantizes = definition.function == AggregateFunction::Quantize;
  const auto zero = static_cast<std::size_t>(dif::kQuantizeZero);
  if (quantizes && layout.first + 1 == zero && all[zero].count != 0) layout.first = zero;
  layout.low_width = std::max(all[layout.first].label.size(), layout.low_width);
  layout.high_width = std::max(all[layout.last].label.size(), layout.high_width);
  return layout;
}

void append_packed(std::string& out, const Rows& rows, const Settings& settings,
                   const CodeNames& names, bool escapes) {
  std::vector<std::vector<Bucket>> buckets;
  for (const auto& row : rows) {
    buckets.push_back(buckets_of(*row.values[0].definition, row.values[0].words));
    if (buckets.back().empty()) return;
  }
  const PackedLayout layout = packed_layout(*rows[0].values[0].definition, buckets);
  fmt::format_to(std::back_inserter(out), "\n{:>{}} {:>{}} .{:-<{}}. {:<{}} | count\n",
                 rows[0].keys.empty() ? "" : "key", key_width(rows[0].keys), "min",
                 layout.low_width, "", layout.last - layout.first + 1, "max", layout.high_width);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    BarScale scale;
    std::uint64_t together = 0;  // increments of any size: it may wrap
    for (const Bucket& bucket : buckets[i]) {
      scale.take(bucket.count);
      together += static_cast<std::uint64_t>(divided(bucket.count, rows[i].values[0].normal));
    }
    append_key(out, rows[i].keys, names, escapes);
    out += ' ';
    append_right(out, buckets[i][layout.first].label, layout.low_width);
    out += " :";
    for (std::size_t at = layout.first; at <= layout.last; ++at) {
      append_packed_cell(out, buckets[i][at].count, scale.total(bar_style(settings)),
                         settings.utf8);
    }
    fmt::format_to(std::back_inserter(out), ": {:<{}} | {}\n", buckets[i][layout.last].label,
                   layout.high_width, static_cast<std::int64_t>(together));
  }
}

}  // namespace

void append_percentiles(std::string& out, const Aggregations& table,
                        std::span<const std::uint32_t> aggregations, std::string_view wanted,
                        const Settings& settings, const CodeNames& names, bool escapes) {
  const std::vector<std::uint32_t> millionths = dif::parse_percentiles(wanted);
  const ColumnStyle style{false, false, kKeyWidth, settings.stack_indent, escapes};
  for (const auto& row : table.rows(aggregations, settings)) {
    for (const Value& key : row.keys) append_column(out, key, style, names);
    while (out.ends_with(' ')) out.pop_back();
    if (!row.keys.empty()) out += '\n';
    const AggregateValue& value = row.values[0];
    for (const std::uint32_t each : millionths) {
      const auto range = percentile_range(*value.definition, value.words, each);
      fmt::format_to(std::back_inserter(out), "{:>16} = {}\n", fmt::format("p{}", each / 1e4),
                     range ? range_text(*range) : "no values");
    }
  }
}

void append_aggregations(std::string& out, const Aggregations& table,
                         std::span<const std::uint32_t> aggregations, const Settings& settings,
                         const CodeNames& names, bool escapes) {
  const Rows rows = table.rows(aggregations, settings);
  if (rows.empty()) return;
  if (aggregations.size() == 1) {
    const AggregateFunction function = rows[0].values[0].definition->function;
    const bool counts = function == AggregateFunction::Count || function == AggregateFunction::Sum;
    if (settings.aggregation_histogram && counts) {
      return append_histogram(out, rows, settings, names, escapes);
    }
    if (settings.aggregation_pack && is_distribution(function)) {
      return append_packed(out, rows, settings, names, escapes);
    }
  }
  append_lines(out, rows, settings, names, escapes);
}

}  // namespace ringside::cli
