// print(): a value with its type, structures member by member, from the shapes that the compiler
// left in the program. docs/output.md says what it looks like.
// Does not: read the guest. Only what was recorded is printed, so pointers stay numbers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/values.h"
#include "dif/program/program.h"

namespace ringside::cli {

/// Appends "TYPE VALUE" of the shape `shape`; `bytes` may be shorter than the type (printsize):
/// what is not there prints as "...".
void append_print(std::string& out, const std::vector<dif::TypeShape>& shapes, std::uint32_t shape,
                  Bytes bytes, const CodeNames& names);
/// The same for a value whose type has no shape.
void append_print(std::string& out, const Value& value, const CodeNames& names);

/// D's name for a value without a shape: "int64_t", "string"...
std::string type_name(const dif::ValueType& type);

/// Reads an integer, an enumerator or a pointer of a shape, or a bit-field at `bit_offset` in
/// `bytes`; `bit_width` 0 means the whole type. False when the bytes do not hold it.
bool read_scalar(const dif::TypeShape& shape, Bytes bytes, std::uint32_t bit_offset,
                 std::uint32_t bit_width, std::uint64_t& value);

/// The bits of an __int128, whole: low half, high half. Empty for other types, bit-fields, and
/// where the bytes do not hold it.
std::optional<std::array<std::uint64_t, 2>> read_wide(const dif::TypeShape& shape, Bytes bytes,
                                                      std::uint32_t bit_width);
/// In hexadecimal digits after "0x", without zeros in front.
std::string int128_text(const std::array<std::uint64_t, 2>& wide);

/// Whether the type holds text; uint8_t and unsigned char hold numbers.
bool is_character(const dif::TypeShape& shape);

/// C's escapes for what is not printable, and for quotes.
std::string quoted(std::string_view text);

inline constexpr unsigned kDeepestShape = 32;  // shapes come from files; one could hold itself

}  // namespace ringside::cli
