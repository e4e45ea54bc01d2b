#include "dif/d/actions/quantize_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace ringside::d {

Checked<std::int64_t> QuantizeParameters::parameter(const Expr& call, std::size_t index,
                                                    std::string_view type_tag,
                                                    std::string_view what) {
  TRY(tools_.resolver.resolve(call.list[index]));
  const Expr& e = *call.list[index];
  if (!tools_.types.is_integer(e.type)) {
    return argument_type("D_PROTO_ARG", call, index, "int", tools_.types.name(e.type));
  }
  if (const auto value = tools_.resolver.known_value(e)) return static_cast<std::int64_t>(*value);
  return complain(type_tag, e.at,
                  fmt::format("{}( ) argument #{} ({}) must be an integer constant", *call.text,
                              index + 1, what));
}

Checked<std::uint64_t> QuantizeParameters::lquantize(const Expr& call) {
  const std::int64_t base = TRY(parameter(call, 1, "D_LQUANT_BASETYPE", "base"));
  const std::int64_t limit = TRY(parameter(call, 2, "D_LQUANT_LIMTYPE", "limit"));
  const std::int64_t step =
      call.list.size() > 3 ? TRY(parameter(call, 3, "D_LQUANT_STEPTYPE", "step")) : 1;
  const auto wrong = [&](std::string_view tag, std::size_t index, std::string_view text) {
    return complain(tag, call.list[std::min(index, call.list.size() - 1)]->at,
                    fmt::format("lquantize( ) {}", text));
  };
  if (base < INT32_MIN || base > INT32_MAX)
    return wrong("D_LQUANT_BASEVAL", 1, "base must be a 32-bit quantity");
  if (limit < INT32_MIN || limit > INT32_MAX)
    return wrong("D_LQUANT_LIMVAL", 2, "limit must be a 32-bit quantity");
  if (limit <= base) return wrong("D_LQUANT_MISMATCH", 1, "base must be less than its limit");
  if (step <= 0) return wrong("D_LQUANT_STEPTYPE", 3, "step must be a positive integer constant");
  if (step > UINT16_MAX) return wrong("D_LQUANT_STEPVAL", 3, "step must be a 16-bit quantity");
  const std::int64_t levels = (limit - base) / step;
  if (levels == 0) return wrong("D_LQUANT_STEPLARGE", 3, "step is too large: there are no levels");
  if (levels > UINT16_MAX)
    return wrong("D_LQUANT_STEPSMALL", 3, "step is too small: there are too many levels");
  return static_cast<std::uint64_t>(step) << 48 | static_cast<std::uint64_t>(levels) << 32 |
         static_cast<std::uint32_t>(base);
}

/// The greatest bucket fits into 64 bits, and each magnitude's steps fall on whole values.
Checked<void> QuantizeParameters::check_magnitudes(const Expr& call, std::int64_t factor,
                                                   std::int64_t high, std::int64_t steps) {
  const auto wrong = [&](std::string_view tag, std::size_t index, std::string_view text) {
    return complain(tag, call.list[index]->at, fmt::format("llquantize( ) {}", text));
  };
  std::int64_t top = 1;
  for (std::int64_t i = 0; i <= high; ++i) {
    if (__builtin_mul_overflow(top, factor, &top)) {
      return wrong("D_LLQUANT_MAGTOOBIG", 3,
                   "factor raised to the power of the high magnitude overflows 64 bits");
    }
  }
  // A magnitude's steps must fall on whole values: the factor divides the steps, or the other way.
  std::int64_t power = factor;
  while (power < steps) power *= factor;
  if (steps % factor != 0 || power % steps != 0) {
    return wrong("D_LLQUANT_FACTOREVEN", 1,
                 "factor must evenly divide the number of steps, and the steps a power of it");
  }
  return {};
}

/// Whether there are such buckets.
Checked<void> QuantizeParameters::check_log_linear(const Expr& call, std::int64_t factor,
                                                   std::int64_t low, std::int64_t high,
                                                   std::int64_t steps) {
  const auto wrong = [&](std::string_view tag, std::size_t index, std::string_view text) {
    return complain(tag, call.list[index]->at, fmt::format("llquantize( ) {}", text));
  };
  const auto fits = [](std::int64_t value) { return value >= 0 && value <= UINT16_MAX; };
  if (!fits(factor))
    return wrong("D_LLQUANT_FACTORVAL", 1, "factor must be an unsigned 16-bit quantity");
  if (!fits(low))
    return wrong("D_LLQUANT_LOWVAL", 2, "low magnitude must be an unsigned 16-bit quantity");
  if (!fits(high))
    return wrong("D_LLQUANT_HIGHVAL", 3, "high magnitude must be an unsigned 16-bit quantity");
  if (!fits(steps))
    return wrong("D_LLQUANT_NSTEPVAL", 4, "number of steps must be an unsigned 16-bit quantity");
  if (factor < 2) return wrong("D_LLQUANT_FACTORSMALL", 1, "factor must be two or more");
  if (low >= high)
    return wrong("D_LLQUANT_MAGRANGE", 2, "high magnitude must be greater than low magnitude");
  if (steps < factor)
    return wrong("D_LLQUANT_FACTORNSTEPS", 4,
                 "factor must not be greater than the number of steps");
  return check_magnitudes(call, factor, high, steps);
}

Checked<std::uint64_t> QuantizeParameters::llquantize(const Expr& call) {
  const std::int64_t factor = TRY(parameter(call, 1, "D_LLQUANT_FACTORTYPE", "factor"));
  const std::int64_t low = TRY(parameter(call, 2, "D_LLQUANT_LOWTYPE", "low magnitude"));
  const std::int64_t high = TRY(parameter(call, 3, "D_LLQUANT_HIGHTYPE", "high magnitude"));
  const std::int64_t steps = TRY(parameter(call, 4, "D_LLQUANT_NSTEPTYPE", "number of steps"));
  TRY(check_log_linear(call, factor, low, high, steps));
  return static_cast<std::uint64_t>(factor) << 48 | static_cast<std::uint64_t>(low) << 32 |
         static_cast<std::uint64_t>(high) << 16 | static_cast<std::uint64_t>(steps);
}

/// Every use of an aggregation has the same buckets.
Checked<void> QuantizeParameters::check_same(const Expr& call, const dif::Aggregation& known,
                                             std::uint64_t parameters) {
  if (known.parameters == parameters) return {};
  struct Part {
    std::string_view tag, name;
    unsigned shift, bits;
    std::size_t argument;
  };
  // As packed: see dif/program/aggregate_function.h.
  constexpr Part kLinear[] = {{"D_LQUANT_MATCHBASE", "base", 0, 32, 1},
                              {"D_LQUANT_MATCHLIM", "limit", 32, 16, 2},
                              {"D_LQUANT_MATCHSTEP", "step", 48, 16, 3}};
  constexpr Part kLog[] = {{"D_LLQUANT_FACTORMATCH", "factor", 48, 16, 1},
                           {"D_LLQUANT_LOWMATCH", "low magnitude", 32, 16, 2},
                           {"D_LLQUANT_HIGHMATCH", "high magnitude", 16, 16, 3},
                           {"D_LLQUANT_NSTEPMATCH", "number of steps", 0, 16, 4}};
  const bool linear = known.function == dif::AggregateFunction::Lquantize;
  const auto value = [&](const Part& part, std::uint64_t packed) {
    const std::uint64_t field = packed >> part.shift & ((std::uint64_t{1} << part.bits) - 1);
    const bool is_levels = linear && part.argument == 2;  // of lquantize's limit
    return is_levels ? field * (packed >> 48) : field;
  };
  const auto parts = linear ? std::span<const Part>(kLinear) : std::span<const Part>(kLog);
  for (const Part& part : parts) {
    if (value(part, known.parameters) == value(part, parameters)) continue;
    const std::size_t at = std::min(part.argument, call.list.size() - 1);
    return complain(part.tag, call.list[at]->at,
                    fmt::format("{}( ) {} (argument #{}) doesn't match its earlier use on line {}",
                                *call.text, part.name, part.argument + 1, table_.line(known.name)));
  }
  return {};
}

}  // namespace ringside::d
