// In this file, top to bottom: one distribution, one column, one print, records.
#include "cli/pictures/heat_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace ringside::cli {
namespace {

/// A member that is an integer of 64 bits with a sign.
std::optional<std::int64_t> integer_member_of(const Tree& tree, std::string_view name) {
  if (!tree.is_object()) return std::nullopt;
  const auto found = tree.find(name);
  if (found == tree.end() || !found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  return found->get<std::int64_t>();
}

std::string text_of_keys(const Tree& keys) {
  std::string text;
  for (const Tree& key : keys) text += (text.empty() ? "" : ", ") + key_text(key);
  return text;
}

}  // namespace

Result<HeatTable::Buckets> HeatTable::take_buckets(HeatAggregation& aggregation, const Tree& list) {
  if (!list.is_array()) return malformed_record("\"buckets\" is no array");
  Buckets buckets;
  for (const Tree& bucket : list) {
    const auto value = integer_member_of(bucket, "value"),
               count = integer_member_of(bucket, "count");
    if (!value || !count) return malformed_record("a bucket lacks its value or count");
    if (!buckets.empty()) {
      const std::int64_t last = buckets.rbegin()->first;
      if (*value <= last) return malformed_record("buckets are not in order");
      aggregation.ends[last] = *value;
    }
    buckets[*value] = *count;
    const auto range = bucket.find("range");
    if (range == bucket.end()) continue;
    if (!range->is_string()) return malformed_record("the range of a bucket is no text");
    aggregation.open[*value] = range->get<std::string>();
  }
  return buckets;
}

/// A column of the counts that `now` has more than `last`.
Result<void> HeatTable::append_column(HeatAggregation& aggregation, std::uint64_t time,
                                      const Shown& last, const Shown& now) {
  const bool same_time = !aggregation.times.empty() && aggregation.times.back() >= time;
  if (!same_time) aggregation.times.push_back(time);
  const auto column = static_cast<std::uint32_t>(aggregation.times.size() - 1);
  for (const auto& [key, buckets] : now) {
    const auto earlier = last.find(key);
    HeatAggregation::Series& series = aggregation.series[key];
    for (const auto& [bucket, count] : buckets) {
      std::int64_t before = 0, more = 0;
      if (earlier != last.end()) {
        const auto found = earlier->second.find(bucket);
        if (found != earlier->second.end()) before = found->second;
      }
      if (__builtin_sub_overflow(count, before, &more) || more <= 0) continue;
      if (++cells_ > kMostCells) {
        return fail(ErrorCode::Limit,
                    fmt::format("there are more than {} cells; print fewer keys, or less often",
                                kMostCells));
      }
      series.cells.push_back({column, bucket, static_cast<std::uint64_t>(more)});
      series.total = saturated_sum(series.total, static_cast<std::uint64_t>(more));
    }
  }
  return {};
}

Result<void> HeatTable::take(const Id& id, std::uint64_t time, const Tree& data) {
  HeatAggregation& aggregation = aggregations_[id];
  Shown now;
  for (const Tree& entry : data) {
    if (!entry.is_object() || !entry.contains("keys") || !entry["keys"].is_array()) {
      return malformed_record("an entry of \"aggregation-data\" lacks its keys");
    }
    const auto list = entry.find("buckets");
    if (list == entry.end()) {
      others_.insert(id.second);
      return {};
    }
    Buckets& sum = now[text_of_keys(entry["keys"])];
    for (const auto& [bucket, count] : TRY(take_buckets(aggregation, *list))) {
      if (__builtin_add_overflow(sum[bucket], count, &sum[bucket])) sum[bucket] = INT64_MAX;
    }
  }
  Shown& last = shown_[id];
  TRY(append_column(aggregation, time, last, now));
  last = std::move(now);
  return {};
}

Result<void> HeatTable::add(const Tree& record) {
  const auto output = record.find("output");
  if (output == record.end()) return {};
  if (!output->is_array()) return malformed_record("\"output\" is no array");
  const auto time = integer_member_of(record, "timestamp");
  if (!time || *time < 0) return malformed_record("\"timestamp\" is no time in nanoseconds");
  for (const Tree& item : *output) {
    if (!item.is_object()) return malformed_record("an item of \"output\" is no object");
    const Tree* const emptied = emptied_aggregation(item);
    const auto data = item.find("aggregation-data");
    if (emptied == nullptr && data == item.end()) continue;
    const auto name = TRY(aggregation_name(item));
    const Id id{machine_of(record, item), name};
    machines_.insert(id.first);
    if (emptied != nullptr) {
      shown_.erase(id);
      continue;
    }
    if (!data->is_array()) return malformed_record("\"aggregation-data\" is no array");
    const auto function = item.find("aggregation-function");
    TRY(take(id, static_cast<std::uint64_t>(*time), *data));
    aggregations_[id].is_quantize = function != item.end() && *function == "quantize";
  }
  return {};
}

}  // namespace ringside::cli
