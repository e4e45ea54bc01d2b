// In this file, top to bottom: the buckets of each function, which of them are shown, one row.
#include "cli/distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "dif/aggregate_function.h"

namespace ringside::cli {
namespace {

constexpr int kBarWidth = 40;
constexpr std::string_view kTitle = "------------- Distribution -------------";

std::vector<Bucket> quantize_buckets(std::span<const std::int64_t> words) {
  std::vector<Bucket> buckets;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::int64_t bound = dif::quantize_value(i);
    buckets.push_back({fmt::format("{}", bound), bound, words[i]});
  }
  return buckets;
}

/// Buckets between two open ends; `Parameters` are those of lquantize() or llquantize().
template <class Parameters>
std::vector<Bucket> open_ended_buckets(const Parameters& parameters,
                                       std::span<const std::int64_t> words) {
  const std::int64_t base = parameters.lower_bound(1);
  std::vector<Bucket> buckets{{fmt::format("< {}", base), base - 1, words.front()}};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::int64_t bound = parameters.lower_bound(i);
    const bool last = i + 1 == words.size();
    buckets.push_back({fmt::format("{}{}", last ? ">= " : "", bound), bound, words[i]});
  }
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
  const int depth = std::min(length, static_cast<int>(std::lround(share * length)));
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
  if (words.size() != dif::aggregate_words(aggregation)) return {};
  switch (aggregation.function) {
    case dif::AggregateFunction::Quantize: return quantize_buckets(words);
    case dif::AggregateFunction::Lquantize:
      return open_ended_buckets(dif::LinearParameters::unpack(aggregation.parameters), words);
    case dif::AggregateFunction::Llquantize:
      return open_ended_buckets(dif::LogLinearParameters::unpack(aggregation.parameters), words);
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
