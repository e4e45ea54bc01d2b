// In this file, top to bottom: scalars, the printer (scalars, arrays, structures), entry points.
#include "cli/output/pretty_print.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>

namespace ringside::cli {
namespace {

using dif::TypeShape;
using Kind = TypeShape::Kind;

constexpr std::size_t kIndent = 4;
constexpr std::string_view kMissing = "...";
constexpr std::size_t kExtendedBytes = 10;  // of a long double: the rest is padding

void append_hex(std::string& out, std::uint64_t value) {
  if (value == 0) {
    out += '0';
  } else {
    fmt::format_to(std::back_inserter(out), "0x{:x}", value);
  }
}

void append_character(std::string& out, std::uint64_t value) {
  const auto c = static_cast<unsigned char>(value);
  if (c == 0) {
    out += "'\\0'";
  } else if (std::isprint(c) != 0) {
    fmt::format_to(std::back_inserter(out), "'{}'", static_cast<char>(c));
  } else {
    fmt::format_to(std::back_inserter(out), "'\\{:03o}'", c);
  }
}

class Printer {
 public:
  Printer(std::string& out, const std::vector<TypeShape>& shapes, const CodeNames& names)
      : out_(out), shapes_(shapes), names_(names) {}

  void top(std::uint32_t shape, Bytes bytes) {
    if (shape >= shapes_.size()) return;
    append_type(shapes_[shape]);
    out_ += ' ';
    value(shapes_[shape], bytes, 0, 0, 0);
  }

 private:
  const TypeShape* element(const TypeShape& shape) const {
    return shape.element < shapes_.size() ? &shapes_[shape.element] : nullptr;
  }

  /// Of a type without a name its keyword stands alone: "struct *".
  void append_type(const TypeShape& shape) {
    constexpr std::string_view kUnnamed = " {...}";
    std::string_view rest = shape.name;
    if (rest.empty()) rest = shape.kind == Kind::Union ? "union" : "struct";
    for (std::size_t at; (at = rest.find(kUnnamed)) != std::string_view::npos;) {
      out_ += rest.substr(0, at);
      rest.remove_prefix(at + kUnnamed.size());
    }
    out_ += rest;
  }

  void value(const TypeShape& shape, Bytes bytes, std::uint32_t bit_offset, std::uint32_t bit_width,
             unsigned depth) {
    switch (shape.kind) {
      case Kind::Struct:
      case Kind::Union: return members(shape, bytes, depth);
      case Kind::Array: return array(shape, bytes, depth);
      case Kind::String: return text_list(bytes);
      case Kind::Float: return number(shape, bytes);
      case Kind::Void:
      case Kind::Function: out_ += kMissing; return;
      case Kind::Integer:
      case Kind::Pointer:
      case Kind::Enum: break;
    }
    if (const auto wide = read_wide(shape, bytes, bit_width)) {
      out_ += int128_text(*wide);
      return;
    }
    std::uint64_t bits = 0;
    if (!read_scalar(shape, bytes, bit_offset, bit_width, bits)) {
      out_ += kMissing;
      return;
    }
    scalar(shape, bits, bit_width);
  }

  void scalar(const TypeShape& shape, std::uint64_t bits, std::uint32_t bit_width) {
    if (shape.kind == Kind::Enum) {
      const auto number = static_cast<std::int64_t>(bits);
      for (const auto& [name, known] : shape.enumerators) {
        if (known == number) {
          out_ += name;
          return;
        }
      }
      return append_number(out_, number);
    }
    if (is_character(shape) && bit_width == 0) {
      return append_character(out_, bits);
    }
    if (shape.kind == Kind::Pointer) {
      const TypeShape* const target = element(shape);
      if (target != nullptr && target->kind == Kind::Function && bits != 0) {
        const std::string name = names_.describe(GuestVirt(bits));
        if (!split_code_name(name).symbol.empty()) {
          out_ += name;
          return;
        }
      }
    }
    // A negative number shows the bits that its type has.
    const std::uint64_t width = bit_width != 0 ? bit_width : shape.size * 8;
    if (width < 64) bits &= (std::uint64_t{1} << width) - 1;
    append_hex(out_, bits);
  }

  void number(const TypeShape& shape, Bytes bytes) {
    const bool known = shape.size == 4 || shape.size == 8 || shape.size == 16;
    if (!known || bytes.size() < shape.size) {
      out_ += kMissing;
    } else if (shape.size == 16) {
      long double number = 0;
      std::memcpy(&number, bytes.data(), kExtendedBytes);
      fmt::format_to(std::back_inserter(out_), "{}", number);
    } else if (shape.size == 4) {
      const auto bits = static_cast<std::uint32_t>(unsigned_value(bytes.first(4)));
      fmt::format_to(std::back_inserter(out_), "{}", __builtin_bit_cast(float, bits));
    } else {
      fmt::format_to(std::back_inserter(out_), "{}",
                     __builtin_bit_cast(double, unsigned_value(bytes.first(8))));
    }
  }

  void text(Bytes bytes) {
    out_ += '"';
    out_ += quoted(text_value(bytes));
    out_ += '"';
  }

  /// As arrays of characters are shown, of which a string is one.
  void text_list(Bytes bytes) {
    out_ += "[ ";
    text(bytes);
    out_ += " ]";
  }

  void indent(unsigned depth) { out_.append(depth * kIndent, ' '); }

  static bool is_composite(const TypeShape& shape) {
    return shape.kind == Kind::Struct || shape.kind == Kind::Union || shape.kind == Kind::Array;
  }

  void array(const TypeShape& shape, Bytes bytes, unsigned depth) {
    const TypeShape* const each = element(shape);
    if (each == nullptr || each->size == 0 || shape.count == 0 || depth >= kDeepestShape) {
      out_ += "[ ]";
      return;
    }
    if (is_character(*each)) {
      return text_list(bytes.first(std::min<std::size_t>(bytes.size(), shape.count)));
    }
    const bool rows = is_composite(*each);
    out_ += rows ? "[\n" : "[ ";
    for (std::uint32_t i = 0; i < shape.count; ++i) {
      const std::size_t at = std::size_t{i} * each->size;
      if (rows) indent(depth + 1);
      if (at >= bytes.size()) {  // the rest was not recorded; bounds the loop by the bytes
        out_ += kMissing;
        if (rows) out_ += '\n';
        break;
      }
      if (rows) {
        append_type(*each);
        out_ += ' ';
      }
      const std::size_t size = std::min<std::size_t>(each->size, bytes.size() - at);
      value(*each, bytes.subspan(at, size), 0, 0, depth + 1);
      if (i + 1 < shape.count) out_ += rows ? "," : ", ";
      if (rows) out_ += '\n';
    }
    if (rows) {
      indent(depth);
      out_ += ']';
    } else {
      out_ += " ]";
    }
  }

  void members(const TypeShape& shape, Bytes bytes, unsigned depth) {
    if (depth >= kDeepestShape) {
      out_ += "{ ... }";
      return;
    }
    out_ += "{\n";
    for (const TypeShape::Member& member : shape.members) {
      if (member.shape >= shapes_.size()) continue;
      const TypeShape& type = shapes_[member.shape];
      indent(depth + 1);
      append_type(type);
      if (!member.name.empty()) {
        if (!out_.ends_with('*')) out_ += ' ';
        out_ += member.name;
        if (member.bit_width != 0)
          fmt::format_to(std::back_inserter(out_), " :{}", member.bit_width);
        out_ += " =";
      }
      out_ += ' ';
      const std::size_t at = std::min<std::size_t>(member.bit_offset / 8, bytes.size());
      value(type, bytes.subspan(at), member.bit_offset % 8, member.bit_width, depth + 1);
      out_ += '\n';
    }
    indent(depth);
    out_ += '}';
  }

  std::string& out_;
  const std::vector<TypeShape>& shapes_;
  const CodeNames& names_;
};

}  // namespace

bool is_character(const TypeShape& shape) {
  // Plain char has no sign in kernels since 6.2, which are built with -funsigned-char.
  return shape.kind == Kind::Integer && shape.is_char && (shape.is_signed || shape.name == "char");
}

bool read_scalar(const TypeShape& shape, Bytes bytes, std::uint32_t bit_offset,
                 std::uint32_t bit_width, std::uint64_t& value) {
  const std::uint64_t width = bit_width != 0 ? bit_width : shape.size * 8;
  if (width == 0 || width > 64 || bytes.size() * 8 < bit_offset + width) return false;
  value = unsigned_value(bytes.first(std::min<std::size_t>(bytes.size(), 8))) >> bit_offset;
  if (bit_offset + width > 64) {
    value |= unsigned_value(bytes.subspan(8, 1)) << (64 - bit_offset);
  }
  if (width < 64) {
    value &= (std::uint64_t{1} << width) - 1;
    const bool negative = shape.is_signed && (value >> (width - 1) & 1) != 0;
    if (negative) value |= ~std::uint64_t{0} << width;
  }
  return true;
}

std::optional<std::array<std::uint64_t, 2>> read_wide(const TypeShape& shape, Bytes bytes,
                                                      std::uint32_t bit_width) {
  if (shape.kind != Kind::Integer || shape.size != 16 || bit_width != 0 || bytes.size() < 16) {
    return std::nullopt;
  }
  return std::array{unsigned_value(bytes.first(8)), unsigned_value(bytes.subspan(8, 8))};
}

std::string int128_text(const std::array<std::uint64_t, 2>& wide) {
  if (wide[1] != 0) return fmt::format("0x{:x}{:016x}", wide[1], wide[0]);
  return wide[0] != 0 ? fmt::format("0x{:x}", wide[0]) : "0";
}

std::string quoted(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (std::isprint(byte) != 0) {
      result += c;
    } else {
      result += fmt::format("\\{:03o}", byte);
    }
  }
  return result;
}

std::string type_name(const dif::ValueType& type) {
  switch (type.kind) {
    case dif::ValueKind::Integer:
      return fmt::format("{}int{}_t", type.is_signed ? "" : "u", type.size * 8);
    case dif::ValueKind::String: return "string";
    case dif::ValueKind::Bytes: return fmt::format("uint8_t [{}]", type.size);
    case dif::ValueKind::Void: return "void";
    case dif::ValueKind::KernelStack:
    case dif::ValueKind::UserStack: return "stack";
    case dif::ValueKind::KernelSymbol:
    case dif::ValueKind::KernelModule:
    case dif::ValueKind::UserSymbol:
    case dif::ValueKind::UserModule:
    case dif::ValueKind::UserAddress: return "_symaddr";
  }
  return "void";
}

void append_print(std::string& out, const std::vector<TypeShape>& shapes, std::uint32_t shape,
                  Bytes bytes, const CodeNames& names) {
  Printer(out, shapes, names).top(shape, bytes);
}

void append_print(std::string& out, const Value& value, const CodeNames& names) {
  out += type_name(value.type);
  out += ' ';
  switch (value.type.kind) {
    case dif::ValueKind::Integer: return append_hex(out, unsigned_value(value.bytes));
    case dif::ValueKind::String:
      out += "[ \"";
      out += quoted(text_value(value.bytes));
      out += "\" ]";
      return;
    case dif::ValueKind::Bytes: return append_hex_dump(out, value.bytes);
    case dif::ValueKind::Void: return;
    case dif::ValueKind::KernelStack:
    case dif::ValueKind::UserStack:
    case dif::ValueKind::KernelSymbol:
    case dif::ValueKind::KernelModule:
    case dif::ValueKind::UserSymbol:
    case dif::ValueKind::UserModule:
    case dif::ValueKind::UserAddress:
      return append_column(out, value, ColumnStyle{true, false, 0, kIndent}, names);
  }
}

}  // namespace ringside::cli
