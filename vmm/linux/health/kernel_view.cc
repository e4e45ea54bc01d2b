#include "vmm/linux/health/kernel_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "vmm/base/printable.h"
#include "vmm/linux/layout.h"

namespace ringside::guest_linux {

std::optional<TypeId> KernelView::structure(std::string_view name) const {
  if (const auto found = types().find(TypeKind::Struct, name)) return found;
  return types().find(TypeKind::Union, name);
}

std::optional<Field> KernelView::field(std::string_view name,
                                       std::initializer_list<std::string_view> paths) const {
  const auto type = structure(name);
  if (!type) return std::nullopt;
  for (const std::string_view path : paths) {
    if (const auto found = field_in(*type, path)) return found;
  }
  return std::nullopt;
}

std::optional<Field> KernelView::field_in(TypeId type, std::string_view path) const {
  std::uint64_t bits = 0;
  FoundMember member;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    const auto found = types().find_member(type, path.substr(0, dot));
    path.remove_prefix(std::min(dot + 1, path.size()));
    if (!found || (found->bit_width != 0 && !path.empty())) return std::nullopt;
    member = *found;
    bits += member.bit_offset;
    type = member.type;
  }
  const Type& resolved = types()[types().resolve(type)];
  const std::uint64_t size = types().size_of(type);
  const bool is_value = resolved.kind == TypeKind::Integer || resolved.kind == TypeKind::Enum ||
                        resolved.kind == TypeKind::Pointer;
  if (bits / 8 > UINT32_MAX || size > UINT32_MAX) return std::nullopt;
  Field field;
  field.is_signed = resolved.is_signed;
  if (is_value && (size == 1 || size == 2 || size == 4 || size == 8)) {
    field.bytes = static_cast<std::uint8_t>(size);
  }
  if (member.bit_width == 0) {
    field.offset = static_cast<std::uint32_t>(bits / 8);
    return bits % 8 == 0 ? std::optional(field) : std::nullopt;
  }
  // A bit-field lies in the bytes of its type that are aligned as it.
  if (field.bytes == 0) return std::nullopt;
  const std::uint64_t unit = bits / (size * 8) * (size * 8);
  if (bits - unit + member.bit_width > size * 8) return std::nullopt;
  field.offset = static_cast<std::uint32_t>(unit / 8);
  field.bit_shift = static_cast<std::uint8_t>(bits - unit);
  field.bit_width = static_cast<std::uint8_t>(member.bit_width);
  return field;
}

std::uint64_t KernelView::size_of(std::string_view name) const {
  const auto type = structure(name);
  return type ? types().size_of(*type) : 0;
}

std::optional<std::uint32_t> KernelView::length_of(std::string_view name,
                                                   std::string_view member) const {
  const auto type = structure(name);
  const auto found = type ? types().find_member(*type, member) : std::nullopt;
  if (!found) return std::nullopt;
  const Type& resolved = types()[types().resolve(found->type)];
  return resolved.kind == TypeKind::Array ? std::optional(resolved.count) : std::nullopt;
}

std::optional<std::int64_t> KernelView::enumerator(std::string_view name) const {
  const auto found = types().find_enumerator(name);
  return found ? std::optional(found->second) : std::nullopt;
}

namespace {

/// `raw` is the word that the field lies in.
std::uint64_t decode(std::uint64_t raw, const Field& field) {
  const unsigned width = field.bit_width != 0 ? field.bit_width : field.bytes * 8U;
  raw = raw >> field.bit_shift << (64 - width);
  return field.is_signed
             ? static_cast<std::uint64_t>(static_cast<std::int64_t>(raw) >> (64 - width))
             : raw >> (64 - width);
}

}  // namespace

std::optional<std::uint64_t> value_in(std::span<const std::byte> structure,
                                      const std::optional<Field>& field) {
  if (!field || field->bytes == 0) return std::nullopt;
  if (field->offset > structure.size() || structure.size() - field->offset < field->bytes) {
    return std::nullopt;
  }
  std::uint64_t raw = 0;
  std::memcpy(&raw, structure.data() + field->offset, field->bytes);
  return decode(raw, *field);
}

std::optional<std::uint64_t> KernelView::value(std::optional<GuestVirt> structure,
                                               const std::optional<Field>& field) const {
  if (!structure || !field || field->bytes == 0) return std::nullopt;
  std::uint64_t raw = 0;
  const auto out = std::as_writable_bytes(std::span(&raw, 1)).first(field->bytes);
  if (!reader_.read(structure->wrapping_add(field->offset), out)) return std::nullopt;
  return decode(raw, *field);
}

std::optional<GuestVirt> KernelView::pointer(GuestVirt structure,
                                             const std::optional<Field>& field) const {
  const auto found = value(structure, field);
  return found && *found != 0 ? std::optional(GuestVirt(*found)) : std::nullopt;
}

std::string KernelView::text(GuestVirt at, std::size_t most) const {
  return printable(raw_text(at, most));
}

std::string KernelView::raw_text(GuestVirt at, std::size_t most) const {
  std::string found;
  while (found.size() < most) {
    // By pieces that end where pages end: what follows a short text may not be there.
    std::string piece(std::min<std::size_t>(most - found.size(), 64 - at.raw() % 64), '\0');
    if (!reader_.read(at, std::as_writable_bytes(std::span(piece)))) break;
    const std::size_t end = piece.find('\0');
    found += piece.substr(0, end);
    if (end != std::string::npos) break;
    at = at.wrapping_add(piece.size());
  }
  return found;
}

std::optional<GuestVirt> KernelView::symbol(std::string_view name) const {
  const Symbol* found = kernel_.symbols().find(name, "vmlinux");
  return found != nullptr ? std::optional(found->address) : std::nullopt;
}

std::optional<GuestVirt> KernelView::percpu(std::string_view name, std::uint32_t cpu) const {
  const auto at = symbol(name);
  const auto bases = kernel_.percpu_bases();
  if (!at || cpu >= bases.size()) return std::nullopt;
  return at->wrapping_add(bases[cpu]);  // wraps on purpose since 6.15
}

std::string KernelView::code_name(std::uint64_t address) const {
  const Symbol* symbol = kernel_.symbols().at(GuestVirt(address));
  if (symbol == nullptr) return fmt::format("{:#x}", address);
  std::string name = fmt::format("{}+{:#x}", symbol->name, address - symbol->address.raw());
  const auto modules = kernel_.symbols().modules();
  if (symbol->module != 0 && symbol->module < modules.size()) {
    name += fmt::format(" [{}]", modules[symbol->module].name);
  }
  return name;
}

bool KernelView::walk_list(GuestVirt head, std::size_t most,
                           const std::function<bool(GuestVirt)>& each) const {
  return guest_linux::walk_list(reader_, head, most, each) == ListEnd::Whole;
}

}  // namespace ringside::guest_linux
