// The graph of C types: storage, the built-in LP64 types, names, and questions about types.
// In this file, top to bottom: built-in types, adding, the name index, questions, C spelling.
// Guarantees: every walk over types is bounded, because a hostile guest's BTF may hold cycles.
#include "vmm/base/c_type.h"

#include <algorithm>
#include <array>

#include "vmm/base/check.h"

namespace ringside {

namespace {

// Deeper chains of typedefs, qualifiers, arrays or nested anonymous structs than these do not
// occur in C that compilers accept; a cycle ends here.
constexpr unsigned kMaxChain = 64;
constexpr unsigned kMaxNesting = 32;
constexpr unsigned kMaxMembersVisited = 1 << 16;

/// The kind under which a type's name is looked up: C has one name space for plain names and one
/// for tags; `struct x` and `union x` are told apart so that a wrong tag is not found.
TypeKind name_space(const Type& type) {
  switch (type.kind) {
    case TypeKind::Struct:
    case TypeKind::Union:
    case TypeKind::Enum: return type.kind;
    case TypeKind::Forward: return type.is_union ? TypeKind::Union : TypeKind::Struct;
    default: return TypeKind::Integer;
  }
}

bool is_transparent(TypeKind kind) {
  return kind == TypeKind::Typedef || kind == TypeKind::Const || kind == TypeKind::Volatile ||
         kind == TypeKind::Restrict || kind == TypeKind::Userland;
}

/// All orders of a declaration's words, since C allows any: "long unsigned int" is BTF's spelling.
std::vector<std::string> spellings(std::vector<std::string_view> words) {
  std::vector<std::string> result;
  std::sort(words.begin(), words.end());
  do {
    std::string text;
    for (const std::string_view word : words) {
      if (!text.empty()) text += ' ';
      text += word;
    }
    result.push_back(std::move(text));
  } while (std::next_permutation(words.begin(), words.end()));
  return result;
}

struct BuiltInInteger {
  std::string_view name;  // canonical
  std::uint64_t size;
  bool is_signed;
  std::vector<std::vector<std::string_view>> words;  // every set of words that means it
};

std::vector<BuiltInInteger> built_in_integers() {
  return {
      {"char", 1, true, {{"char"}}},  // plain char is signed on x86-64
      {"signed char", 1, true, {{"signed", "char"}}},
      {"unsigned char", 1, false, {{"unsigned", "char"}}},
      {"short",
       2,
       true,
       {{"short"}, {"short", "int"}, {"signed", "short"}, {"signed", "short", "int"}}},
      {"unsigned short", 2, false, {{"unsigned", "short"}, {"unsigned", "short", "int"}}},
      {"int", 4, true, {{"int"}, {"signed"}, {"signed", "int"}}},
      {"unsigned int", 4, false, {{"unsigned"}, {"unsigned", "int"}}},
      {"long", 8, true, {{"long"}, {"long", "int"}, {"signed", "long"}, {"signed", "long", "int"}}},
      {"unsigned long", 8, false, {{"unsigned", "long"}, {"unsigned", "long", "int"}}},
      {"long long",
       8,
       true,
       {{"long", "long"},
        {"long", "long", "int"},
        {"signed", "long", "long"},
        {"signed", "long", "long", "int"}}},
      {"unsigned long long",
       8,
       false,
       {{"unsigned", "long", "long"}, {"unsigned", "long", "long", "int"}}},
      {"__int128", 16, true, {{"__int128"}, {"signed", "__int128"}}},
      {"unsigned __int128", 16, false, {{"unsigned", "__int128"}}},
      {"_Bool", 1, false, {{"_Bool"}}},
  };
}

struct BuiltInTypedef {
  std::string_view name;
  std::string_view target;
};

// The names that the published D language defines for LP64, and Linux's names of ids.
constexpr std::array kBuiltInTypedefs = {
    BuiltInTypedef{"int8_t", "signed char"},
    BuiltInTypedef{"int16_t", "short"},
    BuiltInTypedef{"int32_t", "int"},
    BuiltInTypedef{"int64_t", "long"},
    BuiltInTypedef{"uint8_t", "unsigned char"},
    BuiltInTypedef{"uint16_t", "unsigned short"},
    BuiltInTypedef{"uint32_t", "unsigned int"},
    BuiltInTypedef{"uint64_t", "unsigned long"},
    BuiltInTypedef{"intptr_t", "long"},
    BuiltInTypedef{"uintptr_t", "unsigned long"},
    BuiltInTypedef{"size_t", "unsigned long"},
    BuiltInTypedef{"ssize_t", "long"},
    BuiltInTypedef{"ptrdiff_t", "long"},
    BuiltInTypedef{"id_t", "int"},
    BuiltInTypedef{"pid_t", "int"},
    BuiltInTypedef{"uid_t", "unsigned int"},
    BuiltInTypedef{"gid_t", "unsigned int"},
    BuiltInTypedef{"uchar_t", "unsigned char"},
    BuiltInTypedef{"ushort_t", "unsigned short"},
    BuiltInTypedef{"uint_t", "unsigned int"},
    BuiltInTypedef{"ulong_t", "unsigned long"},
    BuiltInTypedef{"longlong_t", "long long"},
    BuiltInTypedef{"u_longlong_t", "unsigned long long"},
    BuiltInTypedef{"ipaddr_t", "unsigned int"},
    BuiltInTypedef{"bool", "_Bool"},
};

}  // namespace

TypeGraph::TypeGraph() {
  append(Type{});  // void, id 0
  index_as(TypeId{0}, "void");
  add_built_in_types();
}

TypeGraph::TypeGraph(const TypeGraph* base) : base_(base), first_(kFirstOfOverlay) {
  CHECK(base->base_ == nullptr);
}

void TypeGraph::add_built_in_types() {
  for (const BuiltInInteger& integer : built_in_integers()) {
    const TypeId id = append(Type{.kind = TypeKind::Integer,
                                  .is_signed = integer.is_signed,
                                  .is_char = integer.name.ends_with("char"),
                                  .name = integer.name,
                                  .size = integer.size});
    for (const auto& words : integer.words) {
      for (const std::string& spelling : spellings(words)) index_as(id, intern(spelling));
    }
  }
  const auto add_float = [this](std::string_view name, std::uint64_t size) {
    index(append(Type{.kind = TypeKind::Float, .is_signed = true, .name = name, .size = size}));
  };
  add_float("float", 4);
  add_float("double", 8);
  add_float("long double", 16);
  index(append(Type{.kind = TypeKind::String, .name = "string"}));
  for (const BuiltInTypedef& entry : kBuiltInTypedefs) {
    const TypeId target = find(entry.target).value_or(TypeId{});
    index(append(Type{.kind = TypeKind::Typedef, .name = entry.name, .target = target}));
  }
}

std::span<const Member> TypeGraph::members(TypeId id) const {
  const Type& type = (*this)[id];
  if (type.kind != TypeKind::Struct && type.kind != TypeKind::Union) return {};
  return std::span(owner(id).members_).subspan(type.first, type.length);
}

std::span<const Enumerator> TypeGraph::enumerators(TypeId id) const {
  const Type& type = (*this)[id];
  if (type.kind != TypeKind::Enum) return {};
  return std::span(owner(id).enumerators_).subspan(type.first, type.length);
}

std::span<const Parameter> TypeGraph::parameters(TypeId id) const {
  const Type& type = (*this)[id];
  if (type.kind != TypeKind::Function) return {};
  return std::span(owner(id).parameters_).subspan(type.first, type.length);
}

std::string_view TypeGraph::intern(std::string_view text) {
  return text.empty() ? std::string_view() : std::string_view(names_.emplace_back(text));
}

TypeId TypeGraph::add(Type type) {
  type.name = intern(type.name);
  return append(type);
}

TypeId TypeGraph::add_struct(TypeKind kind, std::string_view name, std::uint64_t size,
                             std::span<const Member> members) {
  const std::uint32_t first = member_count();
  for (Member member : members) {
    member.name = intern(member.name);
    append_member(member);
  }
  return add(Type{.kind = kind,
                  .name = name,
                  .size = size,
                  .first = first,
                  .length = static_cast<std::uint32_t>(members.size())});
}

TypeId TypeGraph::add_enum(std::string_view name, std::uint64_t size, bool is_signed,
                           std::span<const Enumerator> enumerators) {
  const std::uint32_t first = enumerator_count();
  for (Enumerator enumerator : enumerators) {
    enumerator.name = intern(enumerator.name);
    append_enumerator(enumerator);
  }
  return add(Type{.kind = TypeKind::Enum,
                  .is_signed = is_signed,
                  .name = name,
                  .size = size,
                  .first = first,
                  .length = static_cast<std::uint32_t>(enumerators.size())});
}

TypeId TypeGraph::add_function(TypeId result, std::span<const Parameter> parameters,
                               bool is_variadic) {
  const std::uint32_t first = parameter_count();
  for (Parameter parameter : parameters) {
    parameter.name = intern(parameter.name);
    append_parameter(parameter);
  }
  return append(Type{.kind = TypeKind::Function,
                     .is_variadic = is_variadic,
                     .target = result,
                     .first = first,
                     .length = static_cast<std::uint32_t>(parameters.size())});
}

TypeId TypeGraph::pointer_to(TypeId target) {
  const auto& pointers = owner(target).pointers_;
  if (const auto known = pointers.find(target.value); known != pointers.end()) return known->second;
  if (const auto own = pointers_.find(target.value); own != pointers_.end()) return own->second;
  const TypeId id = append(Type{.kind = TypeKind::Pointer, .size = 8, .target = target});
  pointers_.emplace(target.value, id);
  return id;
}

TypeId TypeGraph::userland(TypeId type) {
  if (is_userland(type)) return type;
  const auto& known = owner(type).userland_;
  if (const auto at = known.find(type.value); at != known.end()) return at->second;
  if (const auto own = userland_.find(type.value); own != userland_.end()) return own->second;
  const TypeId id = append(Type{.kind = TypeKind::Userland, .target = type});
  userland_.emplace(type.value, id);
  return id;
}

TypeId TypeGraph::array_of(TypeId element, std::uint32_t count) {
  return append(Type{.kind = TypeKind::Array, .target = element, .count = count});
}

void TypeGraph::reserve(std::size_t types, std::size_t members, std::size_t enumerators,
                        std::size_t parameters, std::size_t names) {
  types_.reserve(types_.size() + types);
  members_.reserve(members_.size() + members);
  enumerators_.reserve(enumerators_.size() + enumerators);
  parameters_.reserve(parameters_.size() + parameters);
  by_name_.reserve(by_name_.size() + names);
  by_enumerator_.reserve(by_enumerator_.size() + enumerators);
}

std::span<const std::byte> TypeGraph::adopt(std::shared_ptr<const std::vector<std::byte>> bytes) {
  return *adopted_.emplace_back(std::move(bytes));
}

TypeId TypeGraph::append(const Type& type) {
  const TypeId id = next_id();
  types_.push_back(type);
  return id;
}

void TypeGraph::replace(TypeId id, const Type& type) {
  CHECK(id.value >= first_);
  types_[id.value - first_] = type;
}

std::uint32_t TypeGraph::append_member(const Member& member) {
  members_.push_back(member);
  return member_count() - 1;
}

std::uint32_t TypeGraph::append_enumerator(const Enumerator& enumerator) {
  enumerators_.push_back(enumerator);
  return enumerator_count() - 1;
}

std::uint32_t TypeGraph::append_parameter(const Parameter& parameter) {
  parameters_.push_back(parameter);
  return parameter_count() - 1;
}

void TypeGraph::claim(TypeKind kind, std::string_view name, TypeId id) {
  const auto known = find(kind, name);
  const bool completes =
      known && (*this)[*known].kind == TypeKind::Forward && (*this)[id].kind != TypeKind::Forward;
  if (!known || completes) by_name_.insert_or_assign(Key{kind, name}, id);
}

void TypeGraph::index(TypeId id) {
  const Type& type = (*this)[id];
  if (!type.name.empty()) claim(name_space(type), type.name, id);
  for (const Enumerator& enumerator : enumerators(id)) {
    if (base_ != nullptr && base_->find_enumerator(enumerator.name)) continue;
    by_enumerator_.try_emplace(enumerator.name, id, enumerator.value);
  }
}

void TypeGraph::index_as(TypeId id, std::string_view name) {
  claim(TypeKind::Integer, name, id);
}

std::optional<TypeId> TypeGraph::find(std::string_view name) const {
  return find(TypeKind::Integer, name);
}

std::optional<TypeId> TypeGraph::find(TypeKind kind, std::string_view name) const {
  const auto found = by_name_.find(Key{name_space(Type{.kind = kind}), name});
  if (found != by_name_.end()) return found->second;
  return base_ != nullptr ? base_->find(kind, name) : std::nullopt;
}

std::optional<std::pair<TypeId, std::int64_t>> TypeGraph::find_enumerator(
    std::string_view name) const {
  const auto found = by_enumerator_.find(name);
  if (found != by_enumerator_.end()) return found->second;
  return base_ != nullptr ? base_->find_enumerator(name) : std::nullopt;
}

TypeId TypeGraph::resolve(TypeId id) const {
  for (unsigned step = 0; step < kMaxChain; ++step) {
    const Type& type = (*this)[id];
    if (!is_transparent(type.kind)) return id;
    id = type.target;
  }
  return TypeId{};
}

std::uint64_t TypeGraph::size_of(TypeId id) const {
  std::uint64_t elements = 1;
  for (unsigned step = 0; step < kMaxChain; ++step) {
    const Type& type = (*this)[resolve(id)];
    std::uint64_t product = 0;
    if (type.kind != TypeKind::Array) {
      return __builtin_mul_overflow(elements, type.size, &product) ? 0 : product;
    }
    if (__builtin_mul_overflow(elements, std::uint64_t{type.count}, &product)) return 0;
    elements = product;
    id = type.target;
  }
  return 0;
}

std::optional<FoundMember> TypeGraph::find_member(TypeId id, std::string_view name) const {
  std::optional<FoundMember> found;
  unsigned budget = kMaxMembersVisited;
  if (!name.empty()) find_member_in(id, name, 0, 0, budget, found);
  return found;
}

/// False once the budget is spent: hostile types can nest so that a full search never ends.
bool TypeGraph::find_member_in(TypeId id, std::string_view name, std::uint64_t bit_base,
                               unsigned depth, unsigned& budget,
                               std::optional<FoundMember>& found) const {
  if (depth > kMaxNesting) return true;
  for (const Member& member : members(resolve(id))) {
    if (budget-- == 0) return false;
    const std::uint64_t offset = bit_base + member.bit_offset;
    if (member.name == name) {
      found = FoundMember{member.type, offset, member.bit_width};
      return true;
    }
    if (!member.name.empty()) continue;
    if (!find_member_in(member.type, name, offset, depth + 1, budget, found)) return false;
    if (found) return true;
  }
  return true;
}

/// Builds a C declaration from the inside out, as C's declarators read.
class TypeGraph::Speller {
 public:
  explicit Speller(const TypeGraph& graph) : graph_(graph) {}

  std::string spell(TypeId id, std::string declarator, unsigned depth) const {
    if (depth > kMaxNesting) return "...";
    const Type& type = graph_[id];
    switch (type.kind) {
      case TypeKind::Pointer: return spell(type.target, pointer(type, declarator), depth + 1);
      case TypeKind::Array:
        return spell(type.target, declarator + '[' + std::to_string(type.count) + ']', depth + 1);
      case TypeKind::Function:
        return spell(type.target, declarator + parameters(id, depth), depth + 1);
      case TypeKind::Const: return qualified("const", type, std::move(declarator), depth);
      case TypeKind::Volatile: return qualified("volatile", type, std::move(declarator), depth);
      case TypeKind::Restrict: return qualified("restrict", type, std::move(declarator), depth);
      case TypeKind::Userland: return spell(type.target, std::move(declarator), depth + 1);
      default: break;
    }
    return declarator.empty() ? named(type) : named(type) + ' ' + declarator;
  }

 private:
  std::string pointer(const Type& type, const std::string& declarator) const {
    const TypeKind target = graph_[graph_.without_userland(type.target)].kind;
    const bool binds_tighter = target == TypeKind::Array || target == TypeKind::Function;
    return binds_tighter ? "(*" + declarator + ')' : '*' + declarator;
  }

  std::string qualified(std::string_view word, const Type& type, std::string declarator,
                        unsigned depth) const {
    if (graph_[graph_.without_userland(type.target)].kind == TypeKind::Pointer) {
      std::string inner(word);
      if (!declarator.empty()) inner += ' ' + declarator;
      return spell(type.target, std::move(inner), depth + 1);
    }
    return std::string(word) + ' ' + spell(type.target, std::move(declarator), depth + 1);
  }

  std::string parameters(TypeId id, unsigned depth) const {
    std::string text;
    for (const Parameter& parameter : graph_.parameters(id)) {
      if (text.size() > 4096) return '(' + text + ", ...)";
      if (!text.empty()) text += ", ";
      text += spell(parameter.type, {}, depth + 8);
    }
    const bool variadic = graph_[id].is_variadic;
    if (text.empty() && variadic) return "()";  // declared so: with parameters that nobody knows
    if (variadic) text += ", ...";
    return '(' + (text.empty() ? "void" : text) + ')';
  }

  static std::string named(const Type& type) {
    std::string name(type.name);
    switch (type.kind) {
      case TypeKind::Void: return "void";
      case TypeKind::Struct: return name.empty() ? "struct {...}" : "struct " + name;
      case TypeKind::Union: return name.empty() ? "union {...}" : "union " + name;
      case TypeKind::Enum: return name.empty() ? "enum {...}" : "enum " + name;
      case TypeKind::Forward: return (type.is_union ? "union " : "struct ") + name;
      default: return name;
    }
  }

  const TypeGraph& graph_;
};

std::string TypeGraph::to_string(TypeId id) const {
  return Speller(*this).spell(id, {}, 0);
}

}  // namespace ringside
