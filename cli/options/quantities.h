// Sizes and rates as dtrace's options write them. Used by the option table and the command line.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "vmm/base/result.h"

namespace ringside::cli {

/// A whole number, decimal, octal (0...) or hexadecimal (0x...), nothing before or after it.
Result<std::uint64_t> parse_number(std::string_view text);

/// Bytes: a number with an optional k, m, g or t (powers of 1024, either case).
Result<std::uint64_t> parse_size(std::string_view text);

/// The interval of a rate: "Nhz" or a bare N is N times a second; with ns us ms s m h d (or their
/// long forms nsec usec msec sec min hour day) the number is the interval itself. Never 0.
Result<std::chrono::nanoseconds> parse_rate(std::string_view text);

}  // namespace ringside::cli
