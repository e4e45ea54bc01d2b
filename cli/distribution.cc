// In this file, top to bottom: the buckets of each function, which of them are shown, one row.
#include "cli/distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace ringside::cli {
namespace {

constexpr std::size_t kQuantizeBuckets = 127;
constexpr std::size_t kZeroBucket = 63;
constexpr int kBarWidth = 40;
constexpr std::string_view kTitle = "------------- Distribution -------------";

/// Lower bound of quantize's bucket i: 0 in the middle, powers of two outwards.
std::int64_t quantize_bound(std::size_t i) {
  if (i == kZeroBucket) return 0;
  if (i > kZeroBucket) return std::int64_t{1} << (i - kZeroBucket - 1);
  return -(std::int64_t{1} << (kZeroBucket - 1 - i));
}

std::vector<Bucket> quantize_buckets(std::span<const std::int64_t> words) {
  std::vector<Bucket> buckets;
  if (words.size() != kQuantizeBuckets) return buckets;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::int64_t bound = quantize_bound(i);
    buckets.push_back({fmt::format("{}", bound), bound, words[i]});
  }
  return buckets;
}

/// Wraps like the guest's arithmetic; parameters were checked by the compiler, not by us.
std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

std::vector<Bucket> lquantize_buckets(std::uint64_t parameters,
                                      std::span<const std::int64_t> words) {
  const auto base = static_cast<std::int32_t>(parameters);
  const auto levels = static_cast<std::uint16_t>(parameters >> 32);
  const auto step = static_cast<std::uint16_t>(parameters >> 48);
  std::vector<Bucket> buckets;
  if (words.size() != std::size_t{levels} + 2) return buckets;
  buckets.push_back({fmt::format("< {}", base), wrapping_add(base, -1), words.front()});
  std::int64_t bound = base;
  for (std::size_t i = 1; i <= levels; ++i) {
    buckets.push_back({fmt::format("{}", bound), bound, words[i]});
    bound += step;
  }
  buckets.push_back({fmt::format(">= {}", bound), bound, words.back()});
  return buckets;
}

/// factor to the power of `magnitude`; 0 when that does not fit.
std::int64_t power(std::int64_t factor, unsigned magnitude) {
  std::int64_t value = 1;
  for (unsigned i = 0; i < magnitude; ++i) {
    if (value > INT64_MAX / factor) return 0;
    value *= factor;
  }
  return value;
}

/// llquantize: each magnitude from factor^low to factor^high is cut into steps of the same size,
/// `steps` of them between 0 and the next power (or less where the values are too small for that).
std::vector<Bucket> llquantize_buckets(std::uint64_t parameters,
                                       std::span<const std::int64_t> words) {
  const auto factor = static_cast<std::int64_t>((parameters >> 48) & 0xffff);
  const auto low = static_cast<unsigned>((parameters >> 32) & 0xffff);
  const auto high = static_cast<unsigned>((parameters >> 16) & 0xffff);
  const auto steps = static_cast<std::int64_t>(parameters & 0xffff);
  std::vector<Bucket> buckets;
  if (factor < 2 || steps < 1 || low > high || words.size() < 2) return buckets;

  std::int64_t bound = power(factor, low);
  buckets.push_back({fmt::format("< {}", bound), bound - 1, words.front()});
  std::size_t at = 1;
  for (unsigned magnitude = low; magnitude <= high; ++magnitude) {
    const std::int64_t next = power(factor, magnitude + 1);
    if (bound == 0 || next == 0) return {};
    const std::int64_t step = next > steps ? next / steps : 1;
    for (; bound < next; bound += step) {
      if (at + 1 >= words.size()) return {};
      buckets.push_back({fmt::format("{}", bound), bound, words[at++]});
    }
    bound = next;
  }
  if (at + 1 != words.size()) return {};
  buckets.push_back({fmt::format(">= {}", bound), bound, words.back()});
  return buckets;
}

struct Scale {
  double total = 0;  // sum of the counts' magnitudes
  bool positives = false, negatives = false;
};

std::string bar(std::int64_t count, const Scale& scale) {
  const bool mixed = scale.positives && scale.negatives;
  const int length = mixed ? kBarWidth / 2 : kBarWidth;
  const double share = scale.total > 0 ? std::fabs(static_cast<double>(count)) / scale.total : 0;
  const int depth = std::min(length, static_cast<int>(share * length + 0.5));
  const std::string drawn(static_cast<std::size_t>(depth), '@');
  const std::string_view right = count > 0 ? std::string_view(drawn) : std::string_view();
  const std::string_view left = count < 0 ? std::string_view(drawn) : std::string_view();
  if (mixed) return fmt::format("{:>20}|{:<20}", left, right);
  if (scale.negatives) return fmt::format("{:>40}|", left);
  return fmt::format("|{:<40}", right);
}

}  // namespace

std::vector<Bucket> buckets_of(const dif::Aggregation& aggregation,
                               std::span<const std::int64_t> words) {
  switch (aggregation.function) {
    case dif::AggregateFunction::Quantize: return quantize_buckets(words);
    case dif::AggregateFunction::Lquantize: return lquantize_buckets(aggregation.parameters, words);
    case dif::AggregateFunction::Llquantize:
      return llquantize_buckets(aggregation.parameters, words);
    default: return {};
  }
}

std::string draw_distribution(const dif::Aggregation& aggregation,
                              std::span<const std::int64_t> words, std::int64_t normal) {
  const std::vector<Bucket> buckets = buckets_of(aggregation, words);
  std::string text = fmt::format("\n{:>16} {:>41} {:<9}\n", "value", kTitle, "count");

  std::size_t first = buckets.size(), last = 0;
  Scale scale;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i].count == 0) continue;
    first = std::min(first, i);
    last = i;
    scale.total += std::fabs(static_cast<double>(buckets[i].count));
    (buckets[i].count > 0 ? scale.positives : scale.negatives) = true;
  }
  if (first == buckets.size()) return text;
  if (first > 0) --first;
  if (last + 1 < buckets.size()) ++last;

  for (std::size_t i = first; i <= last; ++i) {
    text += fmt::format("{:>16} {} {:<9}\n", buckets[i].label, bar(buckets[i].count, scale),
                        buckets[i].count / normal);
  }
  return text;
}

double distribution_total(const dif::Aggregation& aggregation,
                          std::span<const std::int64_t> words) {
  double total = 0;
  for (const Bucket& bucket : buckets_of(aggregation, words)) {
    total += static_cast<double>(bucket.lower) * static_cast<double>(bucket.count);
  }
  return total;
}

}  // namespace ringside::cli
