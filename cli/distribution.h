// The bars of quantize(), lquantize() and llquantize(), drawn as dtrace draws them.
// Fire context: no.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dif/program.h"

namespace ringside::cli {

/// One row of a distribution before it is drawn.
struct Bucket {
  std::string label;       // right-aligned in 16 columns
  std::int64_t lower = 0;  // smallest value that it counts; for sorting by total
  std::int64_t count = 0;
};

/// The buckets of an aggregation's words, all of them. Empty when `words` has another shape than
/// the function and its parameters say.
std::vector<Bucket> buckets_of(const dif::Aggregation& aggregation,
                               std::span<const std::int64_t> words);

/// Header and rows, from one empty bucket below the data to one above it. Counts are divided by
/// `normal`. Starts with a newline, because the keys stand before it on their own line.
std::string draw_distribution(const dif::Aggregation& aggregation,
                              std::span<const std::int64_t> words, std::int64_t normal);

/// What distributions are sorted by: the sum over all buckets of value times count.
double distribution_total(const dif::Aggregation& aggregation, std::span<const std::int64_t> words);

}  // namespace ringside::cli
