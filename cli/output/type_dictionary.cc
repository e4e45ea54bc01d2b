// In this file, top to bottom: C declarations, the two dictionaries, the file.
#include "cli/output/type_dictionary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <unordered_set>

namespace ringside::cli {
namespace {

constexpr unsigned kDeepest = 16;    // of anonymous types in one another
constexpr unsigned kMostSteps = 64;  // of pointers, arrays... to what they are made of

bool has_members(TypeKind kind) {
  return kind == TypeKind::Struct || kind == TypeKind::Union;
}

bool is_c_type(const Type& type) {
  return has_members(type.kind) || type.kind == TypeKind::Enum || type.kind == TypeKind::Forward ||
         type.kind == TypeKind::Typedef;
}

class Declarations {
 public:
  explicit Declarations(const TypeGraph& types) : types_(types) {}

  std::string declare(TypeId id) {
    text_.clear();
    const Type& type = types_[id];
    if (type.kind == TypeKind::Typedef) {
      text_ = "typedef ";
      named(type.target, std::string(type.name), 0);
    } else {
      body(id, 0);
    }
    text_ += ';';
    if (types_.size_of(id) != 0) comment(fmt::format("{} bytes", types_.size_of(id)));
    text_ += '\n';
    return std::move(text_);
  }

 private:
  void comment(const std::string& words) { text_ += fmt::format(" /* {} */", words); }

  /// `name` as a thing of the type `id`, in C's order: what it is made of comes first, and an
  /// anonymous type has no other place than this one.
  void named(TypeId id, std::string name, unsigned depth, unsigned steps = 0) {
    const Type& type = types_[id];
    const TypeKind target = types_[types_.without_userland(type.target)].kind;
    const bool binds_tighter = target == TypeKind::Array || target == TypeKind::Function;
    if (steps > kMostSteps) {
      text_ += "..." + name;
      return;
    }
    switch (type.kind) {
      case TypeKind::Pointer:
        name = binds_tighter ? "(*" + name + ')' : '*' + name;
        return named(type.target, std::move(name), depth, steps + 1);
      case TypeKind::Array:
        return named(type.target, fmt::format("{}[{}]", name, type.count), depth, steps + 1);
      case TypeKind::Function: return named(type.target, name + parameters(id), depth, steps + 1);
      case TypeKind::Const: return qualified("const ", type, std::move(name), depth, steps);
      case TypeKind::Volatile: return qualified("volatile ", type, std::move(name), depth, steps);
      case TypeKind::Restrict: return qualified("restrict ", type, std::move(name), depth, steps);
      case TypeKind::Userland: return named(type.target, std::move(name), depth, steps + 1);
      default: break;
    }
    if (type.name.empty() && is_c_type(type) && depth < kDeepest) {
      body(id, depth);
    } else {
      text_ += types_.to_string(id);
    }
    if (!name.empty()) text_ += ' ' + name;
  }

  void qualified(std::string_view word, const Type& type, std::string name, unsigned depth,
                 unsigned steps) {
    if (types_[types_.without_userland(type.target)].kind == TypeKind::Pointer) {
      name.insert(0, word);
    } else {
      text_ += word;
    }
    named(type.target, std::move(name), depth, steps + 1);
  }

  std::string parameters(TypeId id) const {
    std::string text;
    for (const Parameter& each : types_.parameters(id)) {
      if (!text.empty()) text += ", ";
      text += types_.to_string(each.type);
    }
    if (types_[id].is_variadic) text += text.empty() ? "..." : ", ...";
    return '(' + (text.empty() ? "void" : text) + ')';
  }

  void body(TypeId id, unsigned depth) {
    const Type& type = types_[id];
    switch (type.kind) {
      case TypeKind::Enum: text_ += "enum"; break;
      case TypeKind::Union: text_ += "union"; break;
      case TypeKind::Forward: text_ += type.is_union ? "union" : "struct"; break;
      default: text_ += "struct"; break;
    }
    if (!type.name.empty()) text_.append(" ").append(type.name);
    if (type.kind == TypeKind::Forward) return;
    text_ += " {\n";
    if (type.kind == TypeKind::Enum) {
      for (const Enumerator& each : types_.enumerators(id)) {
        text_ += fmt::format("{:{}}{} = {},\n", "", indent(depth + 1), each.name, each.value);
      }
    } else {
      for (const Member& each : types_.members(id)) member(each, depth + 1);
    }
    text_ += fmt::format("{:{}}}}", "", indent(depth));
  }

  void member(const Member& member, unsigned depth) {
    text_.append(indent(depth), ' ');
    named(member.type, std::string(member.name), depth);
    if (member.bit_width != 0) {
      text_ += fmt::format(" : {};", member.bit_width);
      comment(fmt::format("bit {}", member.bit_offset));
    } else {
      text_ += ';';
      comment(fmt::format("at {}", member.bit_offset / 8));
    }
    text_ += '\n';
  }

  static std::size_t indent(unsigned depth) { return std::size_t{depth} * 4; }

  const TypeGraph& types_;
  std::string text_;
};

template <class Visit>
void for_each_new(const TypeGraph& types, TypeId first, Visit visit) {
  for (TypeId id = first; id < types.next_id(); ++id.value) visit(id, types[id]);
}

}  // namespace

std::string c_dictionary(const TypeGraph& types, TypeId first) {
  std::string text;
  std::unordered_set<std::string> known;
  Declarations declarations(types);
  for_each_new(types, first, [&](TypeId id, const Type& type) {
    if (!is_c_type(type) || type.name.empty()) {
      // An enumeration without a name still gives names to numbers.
      if (type.kind != TypeKind::Enum) return;
    }
    std::string declaration = declarations.declare(id);
    if (known.insert(declaration).second) text += declaration;
  });
  return text;
}

std::string d_dictionary(const TypeGraph& types, TypeId first, std::size_t string_size) {
  std::string text = fmt::format("string /* {} bytes */\n", string_size);
  std::unordered_set<std::string> known{"string"};
  for_each_new(types, first, [&](TypeId id, const Type& type) {
    if (is_c_type(type) || type.kind == TypeKind::Void) return;
    const std::string name = types.to_string(id);
    if (!known.insert(name).second) return;
    const std::uint64_t size = types.size_of(id);
    text += size == 0 ? name + '\n' : fmt::format("{} /* {} bytes */\n", name, size);
  });
  return text;
}

Result<void> write_dictionary(const std::string& path, const std::string& text) {
  const auto failed = [&path] {
    return fail(ErrorCode::Io, fmt::format("failed to write '{}': {}", path, std::strerror(errno)));
  };
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "we"), std::fclose);
  if (!file) return failed();
  if (std::fwrite(text.data(), 1, text.size(), file.get()) != text.size()) return failed();
  if (std::fclose(file.release()) != 0) return failed();
  return {};
}

}  // namespace ringside::cli
