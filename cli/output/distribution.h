// The bars of quantize(), lquantize() and llquantize(), and of scalars under agghist, drawn as
// dtrace draws them; aggpack's one-line form; aggzoom's scale.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/output/aggregations.h"
#include "dif/program/program.h"

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

/// Which buckets are shown, both ends included: the data's, and an empty one on either side; some
/// around 0 (or the first ones) when there is no data. `buckets` is not empty.
std::pair<std::size_t, std::size_t> shown_buckets(const dif::Aggregation& aggregation,
                                                  std::span<const Bucket> buckets);

/// aggzoom: the longest bar nearly fills the line; else bars are shares of the total.
/// encoding=utf8: bars of blocks, to an eighth of a column; else '@'.
struct BarStyle {
  bool zoom = false, utf8 = false;
};
inline BarStyle bar_style(const Settings& settings) {
  return {settings.aggregation_zoom, settings.utf8};
}

/// The scale that bars are drawn against.
class BarScale {
 public:
  void take(std::int64_t count);
  /// agghist: under aggzoom the scale is a whole number.
  void make_whole() { whole_ = true; }
  /// The number that a full line stands for.
  double total(BarStyle style) const;
  /// A bar in 41 columns: '|' and 40 of bar or blanks; both sides of '|' where signs are mixed.
  void append_bar(std::string& out, std::int64_t count, BarStyle style) const;

 private:
  __extension__ using Uint128 = unsigned __int128;
  unsigned steps_of(std::int64_t count, unsigned most, bool cut, BarStyle style) const;

  Uint128 sum_ = 0;
  std::uint64_t largest_ = 0;
  bool positives_ = false, negatives_ = false, whole_ = false;
};

/// Header and rows. Starts with a newline, because the keys stand before it on their own line.
/// Counts are divided by the value's normal; bars are not.
void append_distribution(std::string& out, const AggregateValue& value, BarStyle style);

/// agghist's and aggpack's header rows; keys take `key_width` columns.
void append_histogram_header(std::string& out, std::size_t key_width);

/// One cell of aggpack's line: how much `count` is of `total`.
void append_packed_cell(std::string& out, std::int64_t count, double total, bool utf8);

/// The values that one bucket counts, both ends included; an open end is empty.
struct BucketRange {
  std::optional<std::int64_t> low, high;
};

/// The bucket that holds a percentile, in millionths of all values: at least so many of them are in
/// it or below it, and no bucket below has them. Empty: no bucket counts anything.
std::optional<BucketRange> percentile_range(const dif::Aggregation& aggregation,
                                            std::span<const std::int64_t> words,
                                            std::uint32_t millionths);
/// "4096 .. 8191", "0", "< 0", ">= 100".
std::string range_text(const BucketRange& range);

/// The sum that distributions are sorted by: over all buckets, value times count, where values
/// beyond lquantize()'s range count as one more than its end. In dtrace's own precision, 64 bits.
long double distribution_total(const dif::Aggregation& aggregation,
                               std::span<const std::int64_t> words);

/// How many values were 0, by which distributions of one total are sorted.
std::int64_t distribution_zeros(const dif::Aggregation& aggregation,
                                std::span<const std::int64_t> words);

}  // namespace ringside::cli
