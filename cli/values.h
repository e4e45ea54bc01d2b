// Recorded values as text: the columns of trace() and of aggregation keys, and hex dumps.
// Fire context: no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dif/program.h"

namespace ringside::cli {

using Bytes = std::span<const std::byte>;

/// A recorded value: its type, and bytes that belong to somebody else.
struct Value {
  dif::ValueType type;
  Bytes bytes;
};

/// A little-endian integer of 1, 2, 4 or 8 bytes, extended to 64 bits by its sign.
std::int64_t signed_value(Bytes bytes);
/// The same, extended with zeros.
std::uint64_t unsigned_value(Bytes bytes);
/// Up to the first NUL or the end.
std::string_view text_value(Bytes bytes);

struct ColumnStyle {
  bool quiet = false;      // no padding
  bool raw_bytes = false;  // dump everything that is not an integer
  int text_width = 33;     // columns of a string; 50 for aggregation keys
};

/// One value as trace() prints it: integers in a column by their size, printable text left-aligned,
/// all else as a dump.
std::string column(const dif::ValueType& type, Bytes bytes, const ColumnStyle& style);

/// 16 bytes a line with offsets, hexadecimal and characters, after a header row; begins with a
/// newline. tracemem() prints this.
std::string hex_dump(Bytes bytes);

}  // namespace ringside::cli
