// Recorded values as text: the columns of trace() and of aggregation keys, hex dumps, stacks.
// Everything appends to the caller's text, so that printing a record allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dif/program/program.h"
#include "vmm/base/address.h"

namespace ringside::cli {

/// Names for addresses in the guest's code: the interface that printers ask. The session's view of
/// a program answers.
class CodeNames {
 public:
  virtual ~CodeNames() = default;
  /// Kernel code: "module`symbol+0x10", "module`0xffffffffc0001000" or "0xffffffff81000000".
  virtual std::string describe(GuestVirt address) const = 0;
  /// The same for code of a process; a number when nobody knows better.
  virtual std::string describe_user(std::uint64_t pid, GuestVirt address) const;
};

/// The parts of an address's description. Views of the text that was split.
struct CodeName {
  std::string_view module, symbol;  // empty: unknown
  std::uint64_t offset = 0;         // into the symbol
};
CodeName split_code_name(std::string_view description);

/// The description without "+0x10", as sym(), func() and usym() print it.
std::string_view without_offset(std::string_view description);
/// The module alone, as mod() and umod() print it; the whole description when there is none.
std::string_view module_of(std::string_view description);

using Bytes = std::span<const std::byte>;

/// A recorded value: its type, and bytes that belong to somebody else.
struct Value {
  dif::ValueType type;
  Bytes bytes;
  bool own = false;  // the program's own constant, so no guest chose it
};

/// A little-endian integer of 1, 2, 4 or 8 bytes, extended to 64 bits by its sign.
std::int64_t signed_value(Bytes bytes);
/// The same, extended with zeros.
std::uint64_t unsigned_value(Bytes bytes);
/// By the type's sign.
std::int64_t integer_value(const Value& value);
/// Up to the first NUL or the end.
std::string_view text_value(Bytes bytes);
/// Word `index` of 8-byte words; 0 where there is none.
std::uint64_t word_at(Bytes bytes, std::size_t index);

/// The process of UserStack, UserSymbol... and their address; process 0 for the kernel's.
struct CodeAddress {
  std::uint64_t pid = 0;
  GuestVirt address{0};
};
CodeAddress code_address(const Value& value);
/// The text that sym(), mod(), usym(), umod() and uaddr() print; for any other kind, the address
/// described.
std::string code_text(const Value& value, const CodeNames& names);

/// The width of an integer's column, by its size in bytes; 0 if no integer has that size.
std::size_t column_width(std::size_t size);

struct ColumnStyle {
  bool quiet = false;             // no padding
  bool raw_bytes = false;         // dump everything that is not an integer
  int text_width = 33;            // columns of a string; 50 for aggregation keys
  std::size_t stack_indent = 14;  // columns before each frame
  bool escapes = false;           // for a terminal: text shows its control characters
};

/// One value as trace() prints it: integers in a column by their size, printable text left-aligned,
/// symbols in a column, stacks a frame a line, all else as a dump.
void append_column(std::string& out, const Value& value, const ColumnStyle& style,
                   const CodeNames& names);

/// A newline, then a line for each frame of a kernel or user stack, each `indent` columns in and
/// at least `width` wide.
void append_stack(std::string& out, const Value& stack, std::size_t indent, std::size_t width,
                  const CodeNames& names);

/// 16 bytes a line with offsets, hexadecimal and characters, after a header row; begins with a
/// newline. tracemem() prints this.
void append_hex_dump(std::string& out, Bytes bytes);

void append_number(std::string& out, std::int64_t value);
/// Right-aligned in `width` columns.
void append_padded_number(std::string& out, std::int64_t value, std::size_t width);
/// `text`, then spaces up to `width` columns.
void append_left(std::string& out, std::string_view text, std::size_t width);
void append_right(std::string& out, std::string_view text, std::size_t width);

}  // namespace ringside::cli
