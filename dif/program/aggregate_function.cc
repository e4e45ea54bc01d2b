#include "dif/program/aggregate_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ringside::dif {

namespace {

__extension__ using Wide = unsigned __int128;

/// Counters wrap like the machine's own, without being undefined.
void add(std::int64_t& to, std::uint64_t value) {
  to = static_cast<std::int64_t>(static_cast<std::uint64_t>(to) + value);
}

void add_wide(std::int64_t& low, std::int64_t& high, Wide value) {
  const Wide sum = (static_cast<Wide>(static_cast<std::uint64_t>(high)) << 64 |
                    static_cast<std::uint64_t>(low)) +
                   value;
  low = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum));
  high = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum >> 64));
}

Wide square(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  const std::uint64_t magnitude = value < 0 ? 0 - bits : bits;
  return static_cast<Wide>(magnitude) * magnitude;
}

}  // namespace

LinearParameters LinearParameters::unpack(std::uint64_t packed) {
  return {static_cast<std::int32_t>(packed), static_cast<std::uint16_t>(packed >> 32),
          static_cast<std::uint16_t>(packed >> 48)};
}

std::uint64_t LinearParameters::pack() const {
  return std::uint64_t{step} << 48 | std::uint64_t{levels} << 32 | static_cast<std::uint32_t>(base);
}

std::size_t LinearParameters::bucket(std::int64_t value) const {
  if (value < base) return 0;
  const std::uint64_t distance =
      static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(std::int64_t{base});
  return static_cast<std::size_t>(std::min<std::uint64_t>(distance / step, levels)) + 1;
}

std::int64_t LinearParameters::lower_bound(std::size_t bucket) const {
  return base + static_cast<std::int64_t>(bucket - 1) * step;
}

LogLinearParameters LogLinearParameters::unpack(std::uint64_t packed) {
  return {static_cast<std::uint16_t>(packed >> 48), static_cast<std::uint16_t>(packed >> 32),
          static_cast<std::uint16_t>(packed >> 16), static_cast<std::uint16_t>(packed)};
}

std::uint64_t LogLinearParameters::pack() const {
  return std::uint64_t{factor} << 48 | std::uint64_t{low} << 32 | std::uint64_t{high} << 16 | steps;
}

namespace {

/// factor^exponent; empty when it does not fit.
std::optional<std::int64_t> power(std::int64_t factor, unsigned exponent) {
  std::int64_t result = 1;
  for (; exponent > 0; --exponent) {
    if (__builtin_mul_overflow(result, factor, &result)) return std::nullopt;
  }
  return result;
}

/// One magnitude: from `start` to `start` * factor in steps.
struct Magnitude {
  std::int64_t start, end, step;

  static Magnitude at(std::int64_t start, const LogLinearParameters& p) {
    const std::int64_t end = start * p.factor;
    return {start, end, end > p.steps ? end / p.steps : 1};
  }
  std::size_t buckets() const { return static_cast<std::size_t>((end - start) / step); }
};

}  // namespace

bool LogLinearParameters::valid() const {
  if (factor < 2 || low > high || steps < factor || high > 62) return false;
  if (!power(factor, high + 1u)) return false;
  std::int64_t start = *power(factor, low);
  for (unsigned m = low; m <= high; ++m, start *= factor) {
    const Magnitude magnitude = Magnitude::at(start, *this);
    if ((magnitude.end - magnitude.start) % magnitude.step != 0) return false;
  }
  return steps % factor == 0;
}

std::size_t LogLinearParameters::buckets() const {
  std::size_t count = 2;
  std::int64_t start = *power(factor, low);
  for (unsigned m = low; m <= high; ++m, start *= factor) {
    count += Magnitude::at(start, *this).buckets();
  }
  return count;
}

std::size_t LogLinearParameters::bucket(std::int64_t value) const {
  std::int64_t start = *power(factor, low);
  if (value < start) return 0;
  std::size_t before = 1;
  for (unsigned m = low; m <= high; ++m, start *= factor) {
    const Magnitude magnitude = Magnitude::at(start, *this);
    if (value < magnitude.end) {
      return before + static_cast<std::size_t>((value - magnitude.start) / magnitude.step);
    }
    before += magnitude.buckets();
  }
  return before;
}

std::int64_t LogLinearParameters::lower_bound(std::size_t bucket) const {
  std::int64_t start = *power(factor, low);
  std::size_t before = 1;
  for (unsigned m = low; m <= high; ++m, start *= factor) {
    const Magnitude magnitude = Magnitude::at(start, *this);
    if (bucket < before + magnitude.buckets()) {
      return magnitude.start + static_cast<std::int64_t>(bucket - before) * magnitude.step;
    }
    before += magnitude.buckets();
  }
  return start;
}

std::size_t quantize_bucket(std::int64_t value) {
  if (value == 0) return kQuantizeZero;
  const std::uint64_t magnitude =
      value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  // -2^63 has no bucket of its own: it counts with -2^62.
  const auto distance = std::min<std::size_t>(std::bit_width(magnitude), kQuantizeZero);
  return value < 0 ? kQuantizeZero - distance : kQuantizeZero + distance;
}

std::int64_t quantize_value(std::size_t bucket) {
  if (bucket == kQuantizeZero) return 0;
  if (bucket < kQuantizeZero) return -(std::int64_t{1} << (kQuantizeZero - bucket - 1));
  return std::int64_t{1} << (bucket - kQuantizeZero - 1);
}

namespace {

/// "99.9" as 999000; empty where it is no such number.
std::optional<std::uint32_t> parse_percentile(std::string_view text) {
  constexpr std::size_t kDecimals = 4;
  constexpr std::uint32_t kAll = 1'000'000;
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  std::string decimals(text.substr(std::min(point + 1, text.size())));
  const bool has_digits = !whole.empty() && (point == text.size() || !decimals.empty());
  if (!has_digits || whole.size() > 3 || decimals.size() > kDecimals) return std::nullopt;
  decimals.resize(kDecimals, '0');
  std::uint32_t value = 0;
  for (const char c : std::string(whole) + decimals) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<std::uint32_t>(c - '0');
  }
  if (value == 0 || value > kAll) return std::nullopt;
  return value;
}

}  // namespace

std::vector<std::uint32_t> parse_percentiles(std::string_view text) {
  std::vector<std::uint32_t> all;
  for (;;) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const auto one = parse_percentile(text.substr(0, comma));
    if (!one || all.size() == kMostPercentiles) return {};
    all.push_back(*one);
    if (comma == text.size()) return all;
    text.remove_prefix(comma + 1);
  }
}

std::size_t aggregate_words(const Aggregation& aggregation) {
  switch (aggregation.function) {
    case AggregateFunction::Count:
    case AggregateFunction::Sum:
    case AggregateFunction::Min:
    case AggregateFunction::Max: return 1;
    case AggregateFunction::Avg: return 2;
    case AggregateFunction::Stddev: return 4;
    case AggregateFunction::Quantize: return kQuantizeBuckets;
    case AggregateFunction::Lquantize:
      return LinearParameters::unpack(aggregation.parameters).buckets();
    case AggregateFunction::Llquantize:
      return LogLinearParameters::unpack(aggregation.parameters).buckets();
  }
  return 1;
}

void aggregate_value(const Aggregation& aggregation, std::span<std::int64_t> words,
                     std::uint64_t value, std::int64_t increment, bool fresh) {
  const auto number = static_cast<std::int64_t>(value);
  const auto count_in = [&](std::size_t bucket) {
    add(words[bucket], static_cast<std::uint64_t>(increment));
  };
  switch (aggregation.function) {
    case AggregateFunction::Count: add(words[0], 1); break;
    case AggregateFunction::Sum: add(words[0], value); break;
    case AggregateFunction::Min:
      if (fresh || number < words[0]) words[0] = number;
      break;
    case AggregateFunction::Max:
      if (fresh || number > words[0]) words[0] = number;
      break;
    case AggregateFunction::Stddev: add_wide(words[2], words[3], square(number)); [[fallthrough]];
    case AggregateFunction::Avg:
      add(words[0], 1);
      add(words[1], value);
      break;
    case AggregateFunction::Quantize: count_in(quantize_bucket(number)); break;
    case AggregateFunction::Lquantize:
      count_in(LinearParameters::unpack(aggregation.parameters).bucket(number));
      break;
    case AggregateFunction::Llquantize:
      count_in(LogLinearParameters::unpack(aggregation.parameters).bucket(number));
      break;
  }
}

void aggregate_merge(const Aggregation& aggregation, std::span<std::int64_t> into,
                     std::span<const std::int64_t> from) {
  switch (aggregation.function) {
    case AggregateFunction::Min:
      if (from[0] < into[0]) into[0] = from[0];
      return;
    case AggregateFunction::Max:
      if (from[0] > into[0]) into[0] = from[0];
      return;
    case AggregateFunction::Stddev:
      add(into[0], static_cast<std::uint64_t>(from[0]));
      add(into[1], static_cast<std::uint64_t>(from[1]));
      add_wide(into[2], into[3],
               static_cast<Wide>(static_cast<std::uint64_t>(from[3])) << 64 |
                   static_cast<std::uint64_t>(from[2]));
      return;
    case AggregateFunction::Count:
    case AggregateFunction::Sum:
    case AggregateFunction::Avg:
    case AggregateFunction::Quantize:
    case AggregateFunction::Lquantize:
    case AggregateFunction::Llquantize:
      for (std::size_t i = 0; i < into.size(); ++i) {
        add(into[i], static_cast<std::uint64_t>(from[i]));
      }
      return;
  }
}

Result<void> check_aggregation(const Aggregation& aggregation) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::Invalid, fmt::format("aggregation @{}: {}", aggregation.name, why));
  };
  // The engine keeps one buffer as long as the longest key, whatever a saved program asks for.
  if (aggregation.keys.size() > kMostKeys)
    return refuse(fmt::format("more than {} keys", kMostKeys));
  for (const ValueType& key : aggregation.keys) {
    if (key.kind == ValueKind::Void) return refuse("a key has no value");
    if (key.kind == ValueKind::Bytes && key.size > kLongestBytesKey) {
      return refuse(fmt::format("a key is longer than {} bytes", kLongestBytesKey));
    }
  }
  if (aggregation.function == AggregateFunction::Lquantize) {
    const auto p = LinearParameters::unpack(aggregation.parameters);
    if (p.step == 0 || p.levels == 0) return refuse("lquantize() without steps or levels");
  }
  if (aggregation.function == AggregateFunction::Llquantize &&
      !LogLinearParameters::unpack(aggregation.parameters).valid()) {
    return refuse("llquantize() with parameters that make no buckets");
  }
  return {};
}

}  // namespace ringside::dif
