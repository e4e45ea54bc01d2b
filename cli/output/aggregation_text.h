// Aggregations as dtrace prints them without a format: one line for each key with its values, bars
// for distributions, histograms of scalars (agghist) and packed distributions (aggpack).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cli/options/settings.h"
#include "cli/output/aggregations.h"
#include "cli/output/values.h"

namespace ringside::cli {

/// percentile(): for each key a line with it, and a line for each percentile with the values of its
/// bucket: "p99 = 4096 .. 8191". `wanted` is "50,99".
void append_percentiles(std::string& out, const Aggregations& table,
                        std::span<const std::uint32_t> aggregations, std::string_view wanted,
                        const Settings& settings, const CodeNames& names, bool escapes = false);

/// Appends a line for each key that any of the aggregations has, sorted under `settings`. With
/// `escapes` it is for a terminal: text in keys shows its control characters.
void append_aggregations(std::string& out, const Aggregations& table,
                         std::span<const std::uint32_t> aggregations, const Settings& settings,
                         const CodeNames& names, bool escapes = false);

}  // namespace ringside::cli
