#include "dif/d/types/struct_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "vmm/base/numbers.h"

namespace ringside::d {

std::uint64_t Alignments::of(TypeId type, int depth) {
  const Type& is = types_.at(type);
  if (is.kind == TypeKind::Array) return depth < 32 ? of(is.target, depth + 1) : 1;
  if (is.kind == TypeKind::Struct || is.kind == TypeKind::Union) {
    if (const auto known = known_.find(type.value); known != known_.end()) {
      return known->second;
    }
    std::uint64_t most = 1;
    if (depth >= 32) return most;
    for (const Member& member : types_.graph().members(types_.graph().resolve(type))) {
      most = std::max(most, of(member.type, depth + 1));
    }
    known_.emplace(type.value, most);
    return most;
  }
  // A guest's types may have any size, but an alignment is a power of two.
  const std::uint64_t size = std::clamp<std::uint64_t>(types_.size(type), 1, 16);
  return types_.is_string(type) ? 1 : std::uint64_t{1} << std::countr_zero(size);
}

/// An anonymous member's members are those of the struct around it. False when one was there.
bool StructLayout::take_names(TypeId type, int depth) {
  constexpr std::size_t kMostNames = 1 << 20;  // hostile types can nest without end
  for (const Member& member : types_.graph().members(types_.graph().resolve(type))) {
    if (member.name.empty()) {
      if (depth < 32 && !take_names(member.type, depth + 1)) return false;
    } else if (!names_.emplace(member.name).second || names_.size() > kMostNames) {
      return false;
    }
  }
  return true;
}

Checked<void> StructLayout::check(const Declarator& declarator, TypeId type) {
  const std::string_view name = declarator.name != nullptr ? *declarator.name : std::string_view();
  if (types_.is_void(type) || types_.is_function(type)) {
    return complain(
        "D_DECL_VOIDOBJ", declarator.at,
        fmt::format("cannot have {} member: {}", types_.is_void(type) ? "void" : "function", name));
  }
  const bool anonymous = name.empty() && declarator.bit_width == nullptr;
  if (anonymous ? !take_names(type) : !name.empty() && !names_.emplace(name).second) {
    return complain("D_UNKNOWN", declarator.at,
                    fmt::format("failed to define member '{}': duplicate member name", name));
  }
  if (types_.size(type) == 0 && !types_.is_array(type)) {
    const bool empty = types_.is_struct(type) && types_.kind(type) != TypeKind::Forward;
    if (!empty) {
      return complain("D_DECL_INCOMPLETE", declarator.at,
                      fmt::format("incomplete type {}: {}", types_.name(type), name));
    }
  }
  if (anonymous && !types_.is_struct(type)) {
    return complain("D_DECL_MNAME", declarator.at, "member declaration requires a name");
  }
  return {};
}

Checked<void> StructLayout::check_bit_field(const Declarator& declarator, TypeId type,
                                            std::int64_t bits) const {
  if (bits < 0 || (bits == 0 && declarator.name != nullptr)) {
    return complain("D_DECL_BFCONST", declarator.at,
                    "positive integral constant expression expected as bit-field size");
  }
  if (static_cast<std::uint64_t>(bits) > types_.size(type) * 8) {
    return complain(
        "D_DECL_BFSIZE", declarator.at,
        fmt::format("bit-field too big for type: {} bits of {}", bits, types_.name(type)));
  }
  return {};
}

/// The place in bits, `at` or the next one at which the field does not straddle two units.
std::uint64_t StructLayout::after_bit_field(TypeId type, std::uint64_t at, std::int64_t bits) {
  const auto width = static_cast<std::uint64_t>(bits);
  const std::uint64_t unit = alignments_.of(type) * 8;
  const bool straddles = bits == 0 || at / unit != (at + width - 1) / unit;
  return straddles ? round_up(at, unit) : at;
}

Checked<void> StructLayout::place(const Declarator& declarator, TypeId type,
                                  std::optional<std::int64_t> bits) {
  constexpr std::uint64_t kMaxBits = std::uint64_t{8} << 28;  // offsets are 32 bits
  const std::string_view name = declarator.name != nullptr ? *declarator.name : std::string_view();
  const std::uint64_t size = types_.size(type);
  const std::uint64_t align = alignments_.of(type) * 8;
  std::uint64_t at = is_union_ ? 0 : bits_;
  std::uint64_t width = size * 8;
  Member member{.name = name, .type = type};
  if (bits) {
    TRY(check_bit_field(declarator, type, *bits));
    at = after_bit_field(type, at, *bits);
    width = static_cast<std::uint64_t>(*bits);
    member.bit_width = static_cast<std::uint32_t>(width);
  } else {
    at = round_up(at, align);
  }
  if (size > kMaxBits / 8 || at > kMaxBits - width) {
    return complain("D_DECL_ARRBIG", declarator.at, "struct or union is too large");
  }
  member.bit_offset = static_cast<std::uint32_t>(at);
  bits_ = at + width;
  size_ = std::max(size_, bits_);
  align_ = std::max(align_, align / 8);
  if (!member.name.empty() || !bits) members_.push_back(member);
  return {};
}

std::uint64_t StructLayout::size() const {
  const std::uint64_t bytes = (size_ + 7) / 8;
  return round_up(bytes, align_);
}

}  // namespace ringside::d
