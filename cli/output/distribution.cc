// In this file, top to bottom: the buckets of each function, which of them are shown, bars, one
// distribution, packed cells.
#include "cli/output/distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "dif/program/aggregate_function.h"

namespace ringside::cli {
namespace {

constexpr unsigned kBarWidth = 40;
constexpr unsigned kEighths = 8;         // of a column
constexpr unsigned kZoomedPercent = 95;  // of the line: the longest bar under aggzoom
constexpr std::string_view kTitle = "------------- Distribution -------------";

/// Calls `visit` with the least value of every bucket; the first of an open-ended distribution has
/// none, so it counts as the value before the second's. False when `words` do not fit.
template <class Visit>
bool for_each_bound(const dif::Aggregation& aggregation, std::span<const std::int64_t> words,
                    Visit visit) {
  if (words.size() != dif::aggregate_words(aggregation)) return false;
  const auto open_ended = [&](const auto& parameters) {
    visit(0, parameters.lower_bound(1) - 1);
    for (std::size_t i = 1; i < words.size(); ++i) visit(i, parameters.lower_bound(i));
  };
  switch (aggregation.function) {
    case dif::AggregateFunction::Quantize:
      for (std::size_t i = 0; i < words.size(); ++i) visit(i, dif::quantize_value(i));
      return true;
    case dif::AggregateFunction::Lquantize:
      open_ended(dif::LinearParameters::unpack(aggregation.parameters));
      return true;
    case dif::AggregateFunction::Llquantize:
      open_ended(dif::LogLinearParameters::unpack(aggregation.parameters));
      return true;
    default: return false;
  }
}

std::uint64_t magnitude(std::int64_t count) {
  const auto bits = static_cast<std::uint64_t>(count);
  return count < 0 ? 0 - bits : bits;
}

/// Whole columns of a bar, then `part` eighths of one.
void append_blocks(std::string& out, unsigned whole, unsigned part, BarStyle style) {
  if (!style.utf8) {
    out.append(whole, '@');
    return;
  }
  for (; whole > 0; --whole) out += "\u2588";  // the full block
  if (part == 0) return;
  out += "\xe2\x96";  // U+258F, one eighth from the left, down to U+2589, seven
  out += static_cast<char>(0x90 - part);
}

std::string label(const dif::Aggregation& aggregation, std::size_t index, std::size_t count,
                  std::int64_t bound) {
  if (aggregation.function != dif::AggregateFunction::Quantize) {
    if (index == 0) return fmt::format("< {}", bound + 1);
    if (index + 1 == count) return fmt::format(">= {}", bound);
  }
  return fmt::format("{}", bound);
}

/// Buckets of quantize() below 0 are named by their largest value, all others by their least one.
BucketRange bucket_range(const dif::Aggregation& aggregation, std::span<const Bucket> buckets,
                         std::size_t index) {
  const std::int64_t value = buckets[index].lower;
  const bool is_last = index + 1 == buckets.size();
  if (aggregation.function == dif::AggregateFunction::Quantize) {
    if (index < dif::kQuantizeZero) return {index == 0 ? INT64_MIN : 2 * value + 1, value};
    return {value, is_last ? INT64_MAX : buckets[index + 1].lower - 1};
  }
  if (index == 0) return {std::nullopt, value};
  if (is_last) return {value, std::nullopt};
  return {value, buckets[index + 1].lower - 1};
}

}  // namespace

std::vector<Bucket> buckets_of(const dif::Aggregation& aggregation,
                               std::span<const std::int64_t> words) {
  std::vector<Bucket> buckets;
  for_each_bound(aggregation, words, [&](std::size_t i, std::int64_t bound) {
    buckets.push_back({label(aggregation, i, words.size(), bound), bound, words[i]});
  });
  return buckets;
}

std::pair<std::size_t, std::size_t> shown_buckets(const dif::Aggregation& aggregation,
                                                  std::span<const Bucket> buckets) {
  const auto has_data = [](const Bucket& bucket) { return bucket.count != 0; };
  const std::size_t most = buckets.size() - 1;
  const auto found = std::find_if(buckets.begin(), buckets.end(), has_data);
  if (found == buckets.end()) {
    // Negative increments can cancel all there was, and clear() forgets it.
    switch (aggregation.function) {
      case dif::AggregateFunction::Quantize:
        return {dif::kQuantizeZero - 1, dif::kQuantizeZero + 1};
      case dif::AggregateFunction::Llquantize: return {0, std::min<std::size_t>(1, most)};
      default: return {0, std::min<std::size_t>(2, most)};
    }
  }
  auto first = static_cast<std::size_t>(found - buckets.begin());
  auto last = most;
  while (buckets[last].count == 0) --last;
  if (first > 0) --first;
  if (last < most) ++last;
  return {first, last};
}

void BarScale::take(std::int64_t count) {
  sum_ += magnitude(count);
  largest_ = std::max(largest_, magnitude(count));
  positives_ = positives_ || count > 0;
  negatives_ = negatives_ || count < 0;
}

double BarScale::total(BarStyle style) const {
  return style.zoom ? static_cast<double>(largest_) * 100 / kZoomedPercent
                    : static_cast<double>(sum_);
}

/// How many of `most` steps a count takes: those that it fills where they are cut, else the
/// nearest number.
unsigned BarScale::steps_of(std::int64_t count, unsigned most, bool cut, BarStyle style) const {
  Uint128 part = Uint128{magnitude(count)} * most, scale = sum_;
  if (style.zoom) {
    scale = Uint128{largest_} * 100;
    if (whole_) {
      scale /= kZoomedPercent;
    } else {
      part *= kZoomedPercent;
    }
  }
  if (scale == 0) return 0;
  const Uint128 steps = cut ? part / scale : (2 * part + scale) / (2 * scale);
  return static_cast<unsigned>(std::min<Uint128>(steps, most));
}

void BarScale::append_bar(std::string& out, std::int64_t count, BarStyle style) const {
  const bool mixed = positives_ && negatives_;
  const unsigned length = mixed ? kBarWidth / 2 : kBarWidth;
  const bool grows_left = negatives_ && count <= 0;
  // There are no blocks that are cut at their left.
  const unsigned steps = style.utf8 && !grows_left ? kEighths : 1;
  const unsigned depth = steps_of(count, length * steps, steps > 1, style);
  const unsigned whole = depth / steps, part = depth % steps;
  const std::size_t blank = length - whole - (part != 0 ? 1 : 0);
  const std::size_t half = kBarWidth / 2;
  if (grows_left) {
    out.append(blank, ' ');
    append_blocks(out, whole, 0, style);
    out += '|';
    if (mixed) out.append(half, ' ');
  } else {
    if (mixed) out.append(half, ' ');
    out += '|';
    append_blocks(out, whole, part, style);
    out.append(blank, ' ');
  }
}

void append_distribution(std::string& out, const AggregateValue& value, BarStyle style) {
  const std::vector<Bucket> buckets = buckets_of(*value.definition, value.words);
  fmt::format_to(std::back_inserter(out), "\n{:>16} {:>41} {:<9}\n", "value", kTitle, "count");
  if (buckets.empty()) return;
  BarScale scale;
  for (const Bucket& bucket : buckets) scale.take(bucket.count);
  const auto [first, last] = shown_buckets(*value.definition, buckets);
  for (std::size_t i = first; i <= last; ++i) {
    append_right(out, buckets[i].label, 16);
    out += ' ';
    scale.append_bar(out, buckets[i].count, style);
    fmt::format_to(std::back_inserter(out), " {:<9}\n", divided(buckets[i].count, value.normal));
  }
}

void append_histogram_header(std::string& out, std::size_t key_width) {
  fmt::format_to(std::back_inserter(out), "\n{:>{}} {:>41} {:<9}\n", "key", key_width, kTitle,
                 "count");
}

void append_packed_cell(std::string& out, std::int64_t count, double total, bool utf8) {
  constexpr std::string_view kMore = "__xxxxXX", kLess = "vvvvVV";
  if (count == 0 || total <= 0) {
    out += ' ';
    return;
  }
  const double share = std::min(1.0, std::fabs(static_cast<double>(count)) / total);
  const auto step = [&](std::size_t steps) {
    return static_cast<std::size_t>(std::lround(share * static_cast<double>(steps)));
  };
  if (count < 0) {
    out += kLess[step(kLess.size() - 1)];
  } else if (utf8) {
    out += "\xe2\x96";  // U+2581, the lowest eighth, up to U+2588, the full block
    out += static_cast<char>(0x81 + step(7));
  } else {
    out += kMore[step(kMore.size() - 1)];
  }
}

std::optional<BucketRange> percentile_range(const dif::Aggregation& aggregation,
                                            std::span<const std::int64_t> words,
                                            std::uint32_t millionths) {
  // Negative increments can leave a bucket below 0: it counts nothing.
  __extension__ using Uint128 = unsigned __int128;
  const auto counted = [](std::int64_t count) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0));
  };
  const std::vector<Bucket> buckets = buckets_of(aggregation, words);
  Uint128 total = 0, below = 0;
  for (const Bucket& bucket : buckets) total += counted(bucket.count);
  if (total == 0) return std::nullopt;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    below += counted(buckets[i].count);
    // Exact: below / total >= millionths / 1e6.
    if (counted(buckets[i].count) == 0 || below * 1'000'000 < total * millionths) continue;
    return bucket_range(aggregation, buckets, i);
  }
  return std::nullopt;
}

std::string range_text(const BucketRange& range) {
  if (!range.low) return fmt::format("< {}", range.high.value_or(0) + 1);
  if (!range.high) return fmt::format(">= {}", *range.low);
  return range.low == range.high ? fmt::format("{}", *range.low)
                                 : fmt::format("{} .. {}", *range.low, *range.high);
}

long double distribution_total(const dif::Aggregation& aggregation,
                               std::span<const std::int64_t> words) {
  const bool linear = aggregation.function == dif::AggregateFunction::Lquantize;
  long double total = 0;
  for_each_bound(aggregation, words, [&](std::size_t i, std::int64_t bound) {
    const long double beyond = linear && i + 1 == words.size() ? 1 : 0;
    total += (static_cast<long double>(bound) + beyond) * static_cast<long double>(words[i]);
  });
  return total;
}

std::int64_t distribution_zeros(const dif::Aggregation& aggregation,
                                std::span<const std::int64_t> words) {
  if (aggregation.function == dif::AggregateFunction::Llquantize) return 0;
  const bool linear = aggregation.function == dif::AggregateFunction::Lquantize;
  std::int64_t zeros = 0;
  for_each_bound(aggregation, words, [&](std::size_t i, std::int64_t bound) {
    // The values beyond the range stand for one more than its end, as in the total.
    const std::int64_t beyond = linear && i + 1 == words.size() ? 1 : 0;
    if (bound + beyond == 0) zeros = words[i];
  });
  return zeros;
}

}  // namespace ringside::cli
