// In this file, top to bottom: texts, types by their spelling, a call's description.
#include "providers/functions/syscall_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "vmm/base/printable.h"
#include "vmm/linux/layout.h"

namespace ringside::providers {
namespace {

using guest_linux::load_field;

constexpr std::size_t kLongestText = 128;
/// Of any system call; x86-64 has no registers for more.
constexpr std::uint32_t kMostParameters = 6;

/// Empty for what is no C declaration's text.
std::string text_at(const GuestReader& memory, GuestVirt at) {
  std::array<char, kLongestText> text{};
  const auto bytes = std::as_writable_bytes(std::span(text));
  const std::string_view read(text.data(), read_available(memory, at, bytes));
  const std::size_t end = read.find('\0');
  if (end == read.npos) return {};
  const std::string_view found = read.substr(0, end);
  const bool is_text =
      std::ranges::all_of(found, [](char c) { return c == ' ' || is_name_character(c); });
  return is_text ? std::string(found) : std::string();
}

/// The n-th of an array of pointers to texts.
std::string text_of(const GuestReader& memory, GuestVirt array, std::uint32_t n) {
  const auto at = load_field<std::uint64_t>(memory, array, std::uint64_t{n} * 8);
  return at ? text_at(memory, GuestVirt(*at)) : std::string();
}

/// Takes `word` and the blanks after it off the beginning.
bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  const std::string_view rest = text.substr(word.size());
  if (!rest.starts_with(' ')) return false;
  text = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
  return true;
}

}  // namespace

/// The type that is found by this one's name: BTF's `char` is not D's, and modules repeat types.
TypeId SyscallParameters::first_of(TypeId id, unsigned depth) const {
  constexpr unsigned kDeepest = 4;  // the guest's types may go round in circles
  const TypeGraph& types = kernel_.types();
  const Type& type = types[id];
  if (depth == kDeepest) return id;
  if (type.kind == TypeKind::Const || type.kind == TypeKind::Pointer) {
    const auto& known = type.kind == TypeKind::Const ? consts_ : pointers_;
    const auto found = known.find(first_of(type.target, depth + 1).value);
    return found != known.end() ? found->second : id;
  }
  const bool is_tagged =
      type.kind == TypeKind::Struct || type.kind == TypeKind::Union || type.kind == TypeKind::Enum;
  return (is_tagged ? types.find(type.kind, type.name) : types.find(type.name)).value_or(id);
}

/// Compiled programs share the kernel's types, so none are added: those are found that it has.
void SyscallParameters::index_types() {
  if (std::exchange(is_indexed_, true)) return;
  const TypeGraph& types = kernel_.types();
  const auto index = [&](TypeKind kind, auto& known) {
    for (std::uint32_t n = 0; n < types.size(); ++n) {
      const Type& type = types[TypeId{n}];
      if (type.kind == kind) known.emplace(first_of(type.target).value, TypeId{n});
    }
  };
  index(TypeKind::Const, consts_);
  index(TypeKind::Pointer, pointers_);
  index(TypeKind::Pointer, pointers_);  // those to pointers, which are known now
}

/// "const char *", "struct stat *", "umode_t".
std::optional<TypeId> SyscallParameters::type_of(std::string_view spelling) {
  index_types();
  const TypeGraph& types = kernel_.types();
  constexpr std::string_view kConstPointer = "*const";  // of its own value, which nobody changes
  std::string_view rest = spelling;
  std::size_t stars = 0;
  for (; !rest.empty(); rest.remove_suffix(1)) {
    if (rest.ends_with(kConstPointer)) rest.remove_suffix(kConstPointer.size() - 1);
    if (rest.back() != '*' && rest.back() != ' ') break;
    if (rest.back() == '*') ++stars;
  }
  const bool is_const = take_word(rest, "const");
  std::optional<TypeId> type;
  if (take_word(rest, "struct")) {
    type = types.find(TypeKind::Struct, rest);
  } else if (take_word(rest, "union")) {
    type = types.find(TypeKind::Union, rest);
  } else if (take_word(rest, "enum")) {
    type = types.find(TypeKind::Enum, rest);
  } else if (rest == "void") {
    type = TypeId{};
  } else {
    type = types.find(rest);
  }
  const auto step = [](const auto& known, TypeId to) -> std::optional<TypeId> {
    const auto found = known.find(to.value);
    return found != known.end() ? std::optional(found->second) : std::nullopt;
  };
  if (type) type = first_of(*type);
  if (type && is_const) type = step(consts_, *type).value_or(*type);
  for (; type && stars > 0; --stars) type = step(pointers_, *type);
  if (type && types[*type].kind == TypeKind::Void) return std::nullopt;
  return type;
}

std::optional<ProbeArguments> SyscallParameters::of(std::string_view call) {
  const TypeGraph& types = kernel_.types();
  const auto* const description =
      kernel_.symbols().find(fmt::format("__syscall_meta__{}", call), "vmlinux");
  const auto member = [&](std::string_view name) {
    return guest_linux::offset_of(types, "syscall_metadata", {name});
  };
  const auto count_at = member("nb_args"), types_at = member("types"), names_at = member("args");
  if (description == nullptr || !count_at || !types_at || !names_at) return std::nullopt;
  const GuestVirt at = description->address;
  const auto count = load_field<std::uint32_t>(memory_, at, *count_at);
  const auto type_texts = load_field<std::uint64_t>(memory_, at, *types_at);
  const auto name_texts = load_field<std::uint64_t>(memory_, at, *names_at);
  if (!count || *count > kMostParameters || !type_texts || !name_texts) return std::nullopt;
  ProbeArguments arguments;
  arguments.known = true;
  for (std::uint32_t n = 0; n < *count; ++n) {
    const auto type = type_of(text_of(memory_, GuestVirt(*type_texts), n));
    if (!type) return std::nullopt;
    arguments.types.push_back(*type);
    arguments.names.push_back(text_of(memory_, GuestVirt(*name_texts), n));
  }
  return arguments;
}

}  // namespace ringside::providers
