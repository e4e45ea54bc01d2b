// The words that the aggregating functions keep per key, and how they take in a value: the layout
// of AggregateEntry::words, shared by the firing side (aggregate.h) and the consumer, which merges
// and prints. Buckets are those that DTrace documents.
// Fire context: yes; only aggregate_value() is used there.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "dif/program/program.h"

namespace ringside::dif {

inline constexpr std::size_t kQuantizeBuckets = 127;
inline constexpr std::size_t kQuantizeZero = 63;

/// lquantize(value, base, limit, step): levels linear buckets between underflow and overflow.
struct LinearParameters {
  std::int32_t base = 0;
  std::uint16_t levels = 0, step = 1;

  static LinearParameters unpack(std::uint64_t packed);
  std::uint64_t pack() const;
  std::size_t buckets() const { return levels + std::size_t{2}; }
  std::size_t bucket(std::int64_t value) const;
  /// The least value of bucket 1..levels, and of the overflow bucket levels + 1.
  std::int64_t lower_bound(std::size_t bucket) const;
};

/// llquantize(value, factor, low, high, steps): each magnitude factor^low .. factor^high in linear
/// steps, between underflow and overflow.
struct LogLinearParameters {
  std::uint16_t factor = 0, low = 0, high = 0, steps = 0;

  static LogLinearParameters unpack(std::uint64_t packed);
  std::uint64_t pack() const;
  /// False where a power overflows, or steps do not divide the magnitudes.
  bool valid() const;
  std::size_t buckets() const;
  std::size_t bucket(std::int64_t value) const;
  /// The least value of bucket 1.., and of the overflow bucket.
  std::int64_t lower_bound(std::size_t bucket) const;
};

std::size_t quantize_bucket(std::int64_t value);
/// The value that labels a bucket of quantize(): 0, powers of two and their negatives.
std::int64_t quantize_value(std::size_t bucket);

/// "50,99,99.9" as percentile() takes them: numbers above 0, up to 100, with four decimals at most.
/// The result is in millionths of all values. Empty: there are none, more than kMostPercentiles, or
/// something else.
inline constexpr std::size_t kMostPercentiles = 32;
std::vector<std::uint32_t> parse_percentiles(std::string_view text);

/// Words that each key of the aggregation keeps.
std::size_t aggregate_words(const Aggregation& aggregation);
/// Takes `value` in, as a signed number whatever its type was: that is how dtrace compares, ranks
/// and prints it. `fresh` words are zero and have not seen a value. `increment` is what the
/// quantize family adds to a bucket.
void aggregate_value(const Aggregation& aggregation, std::span<std::int64_t> words,
                     std::uint64_t value, std::int64_t increment, bool fresh);
/// Takes in what another take found for the same key; both have seen values.
void aggregate_merge(const Aggregation& aggregation, std::span<std::int64_t> into,
                     std::span<const std::int64_t> from);
/// Parameters and keys are ones that the engine can keep.
inline constexpr std::size_t kMostKeys = 32;
Result<void> check_aggregation(const Aggregation& aggregation);

/// Stacks of all kinds and depths are one type of key, with room for the deepest. If an aggregation
/// has stacks of the kernel and of processes, its key is a UserStack. Before the kernel's frames,
/// this value stands in place of the process id.
inline constexpr std::uint64_t kKernelFrames = UINT64_MAX;

constexpr bool is_stack(ValueKind kind) {
  return kind == ValueKind::KernelStack || kind == ValueKind::UserStack;
}

/// Bytes that `stack` takes of a key of kind `key`.
constexpr std::uint32_t stack_key_size(const ValueType& stack, ValueKind key) {
  return stack.size + (stack.kind != key ? 8 : 0);
}

}  // namespace ringside::dif
