#include "dif/d/types/types.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "dif/bind/c_types.h"
#include "vmm/base/similar_name.h"

namespace ringside::d {
namespace {

/// The members of a structure, those of its anonymous parts, and as "a.b" those of its members'.
struct MemberNames {
  const TypeGraph& graph;
  std::vector<std::string> own{}, inner{};
  unsigned budget = 4096;  // types come from a guest, and may nest without an end

  void collect(TypeId type, const std::string& path, unsigned depth) {
    constexpr unsigned kDeepest = 8;
    if (depth > kDeepest) return;
    for (const Member& member : graph.members(graph.resolve(type))) {
      if (budget == 0) return;
      --budget;
      if (member.name.empty()) {
        collect(member.type, path, depth + 1);
        continue;
      }
      const std::string name = path + std::string(member.name);
      (path.empty() ? own : inner).push_back(name);
      if (path.empty()) collect(member.type, name + '.', depth + 1);
    }
  }
};

}  // namespace

Types::Types(TypeGraph& graph, std::uint32_t string_size)
    : int32(graph.find("int").value_or(TypeId{})),
      uint32(graph.find("unsigned int").value_or(TypeId{})),
      int64(graph.find("long").value_or(TypeId{})),
      uint64(graph.find("unsigned long").value_or(TypeId{})),
      uint16(graph.find("unsigned short").value_or(TypeId{})),
      string(graph.find("string").value_or(TypeId{})),
      void_pointer(graph.pointer_to(TypeId{})),
      graph_(graph),
      string_size_(string_size) {}

std::string Types::name(TypeId id) const {
  return graph_.to_string(id);
}

bool Types::is_integer(TypeId id) const {
  const Type& type = at(id);
  if (type.kind != TypeKind::Integer && type.kind != TypeKind::Enum) return false;
  return type.size == 1 || type.size == 2 || type.size == 4 || type.size == 8;
}

bool Types::is_struct(TypeId id) const {
  const TypeKind k = kind(id);
  return k == TypeKind::Struct || k == TypeKind::Union || k == TypeKind::Forward;
}

bool Types::is_character(TypeId id) const {
  return dif::is_character(graph_, id);
}

bool Types::is_string_like(TypeId id) const {
  if (is_string(id)) return true;
  return (is_pointer(id) || is_array(id)) && is_character(referent(id));
}

bool Types::is_last(TypeId structure, const FoundMember& member) const {
  return std::ranges::all_of(graph_.members(graph_.resolve(structure)), [&](const Member& other) {
    return other.bit_offset <= member.bit_offset;
  });
}

void Types::use_layout(TypeId id) const {
  const TypeId type = graph_.resolve(id);
  const TypeKind what = graph_[type].kind;
  const bool has_one = what == TypeKind::Struct || what == TypeKind::Union;
  if (has_one) used_layouts_.insert(id);
}

void Types::use_typedef(TypeId id) const {
  if (graph_[id].kind == TypeKind::Typedef && is_integer(id)) used_layouts_.insert(id);
}

std::uint64_t Types::size(TypeId id) const {
  TypeId element = id;
  for (int depth = 0; depth < 64 && is_array(element); ++depth) element = referent(element);
  use_layout(element);
  return measure(id);
}

std::uint64_t Types::measure(TypeId id) const {
  return dif::value_size(graph_, id, string_size_);
}

TypeId Types::decay(TypeId id) const {
  if (is_array(id)) {
    const TypeId element = referent(id);
    return is_userland(id) ? graph_.user_pointer_to(element) : graph_.pointer_to(element);
  }
  if (is_function(id)) return graph_.pointer_to(id);
  return id;
}

TypeId Types::userland(TypeId id) const {
  TypeId plain = graph_.without_userland(id);
  if (is_pointer(plain) && !is_user_pointer(plain)) plain = graph_.user_pointer_to(referent(plain));
  return graph_.userland(plain);
}

TypeId Types::pointed(TypeId pointer) const {
  const TypeId target = referent(pointer);
  return is_userland(target) ? userland(target) : target;
}

TypeId Types::arithmetic(TypeId id) const {
  return kind(id) == TypeKind::Enum ? int32 : id;
}

TypeId Types::arithmetic(TypeId a, TypeId b) const {
  a = arithmetic(a);
  b = arithmetic(b);
  if (size(a) != size(b)) return size(a) > size(b) ? a : b;
  return is_signed(a) ? b : a;
}

bool Types::cast_cuts(TypeId from, TypeId to) const {
  if (!is_integer(to) || size(to) >= 8) return false;
  if (!is_integer(from) || size(from) > size(to)) return true;
  if (size(from) == size(to)) return is_signed(from) != is_signed(to);
  return is_signed(from) && !is_signed(to);
}

bool Types::store_cuts(TypeId from, TypeId to) const {
  if (!is_integer(to) || size(to) >= 8) return false;
  return size(to) < 4 || (is_integer(from) && size(from) <= 4);
}

bool Types::same(TypeId a, TypeId b) const {
  for (int depth = 0; depth < 16; ++depth) {
    const TypeId x = graph_.resolve(a), y = graph_.resolve(b);
    if (x == y) return true;
    const Type &left = graph_[x], &right = graph_[y];
    if (left.kind == TypeKind::Pointer && right.kind == TypeKind::Pointer) {
      a = left.target;
      b = right.target;
      continue;
    }
    if (is_integer(x) && is_integer(y)) {
      return left.size == right.size && left.is_signed == right.is_signed;
    }
    if (is_float(x) && is_float(y)) return left.size == right.size;
    if (is_struct(x) && is_struct(y)) return !left.name.empty() && left.name == right.name;
    if (left.kind != right.kind) return false;
    if (left.kind != TypeKind::Array || left.count != right.count)
      return left.kind == TypeKind::Function;
    a = left.target;
    b = right.target;
  }
  return false;
}

bool Types::pointers_agree(TypeId a, TypeId b) const {
  const TypeId x = referent(a), y = referent(b);
  return is_void(x) || is_void(y) || same(x, y);
}

std::uint64_t Types::wrap(TypeId id, std::uint64_t value) const {
  if (is_pointer(id)) return value;
  const Type& type = at(id);
  return extend(value, type.size, type.is_signed);
}

std::optional<dif::ValueType> Types::value_type(TypeId id) const {
  if (is_string(id)) return dif::ValueType{dif::ValueKind::String, false, 0};
  if (is_pointer(id)) return dif::ValueType{dif::ValueKind::Integer, false, 8};
  const std::uint64_t bytes = measure(id);
  if (is_integer(id)) {
    return dif::ValueType{dif::ValueKind::Integer, is_signed(id),
                          static_cast<std::uint32_t>(bytes)};
  }
  const bool in_memory = is_struct(id) || is_array(id) || is_float(id);
  if (!in_memory || bytes == 0 || bytes > UINT32_MAX) return std::nullopt;
  return dif::ValueType{dif::ValueKind::Bytes, false, static_cast<std::uint32_t>(bytes)};
}

std::string Types::suggest_member(TypeId structure, std::string_view name) const {
  constexpr std::size_t kShort = 120;  // letters of a list
  MemberNames members{graph_};
  members.collect(structure, "", 0);
  std::string text;
  for (const std::string& member : members.own) text += (text.empty() ? "" : ", ") + member;
  text = text.empty() || text.size() > kShort ? "" : "; it has " + text;
  std::string nearest = similar_name(name, members.own, std::identity());
  if (nearest.empty()) nearest = similar_name(name, members.inner, std::identity());
  return text + did_you_mean(nearest);
}

std::uint64_t extend(std::uint64_t value, std::uint64_t size, bool is_signed) {
  switch (size) {
    case 1:
      return is_signed ? static_cast<std::uint64_t>(static_cast<std::int8_t>(value))
                       : static_cast<std::uint8_t>(value);
    case 2:
      return is_signed ? static_cast<std::uint64_t>(static_cast<std::int16_t>(value))
                       : static_cast<std::uint16_t>(value);
    case 4:
      return is_signed ? static_cast<std::uint64_t>(static_cast<std::int32_t>(value))
                       : static_cast<std::uint32_t>(value);
    default: return value;
  }
}

}  // namespace ringside::d
