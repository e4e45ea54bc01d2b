// In this file, top to bottom: messages, finding one name, what one machine needs, filling in the
// values.
#include "dif/bind/bind.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "dif/bind/c_types.h"
#include "dif/bind/shape_table.h"

namespace ringside::dif {

namespace {

using Kind = KernelName::Kind;

template <class... Args>
tl::unexpected<Error> refuse(ErrorCode code, fmt::format_string<Args...> text, Args&&... args) {
  return fail(code, fmt::format(text, std::forward<Args>(args)...));
}

/// Of a module that is not the kernel's main part, for messages.
std::string of_module(const std::string& module) {
  return module == "vmlinux" ? "" : " of the module " + module;
}

bool is_bit_kind(Kind kind) {
  return kind == Kind::BitOffset || kind == Kind::BitUnit || kind == Kind::BitsAbove ||
         kind == Kind::BitsUnused;
}

struct Found {
  TypeId type;
  std::uint64_t bit_offset = 0;  // of a member, since the last '*' or '&'
  std::uint32_t bit_width = 0;   // 0: no bit-field
};

/// Looks names up in one kernel.
class Finder {
 public:
  explicit Finder(KernelNames& kernel) : kernel_(kernel) {}

  Result<std::uint64_t> value(const KernelName& name) {
    const std::uint64_t value = TRY(value_of(name));
    if (!name.fixed || value == name.value) return value;
    return refuse(ErrorCode::Unsupported,
                  "{}: its {} is {} here and {} where the program was compiled, and the code "
                  "depends on that: compile it again here",
                  describe(name), name.kind == Kind::Size ? "size" : "value", value, name.value);
  }

  /// The type at the end of the path.
  Result<Found> follow(const KernelName& name) {
    const TypeGraph& types = kernel_.kernel_types();
    Found found{TRY(root(name))};
    std::string_view rest = name.path;
    while (!rest.empty()) {
      const std::string_view step = rest.substr(0, rest.find('.'));
      rest.remove_prefix(std::min(step.size() + 1, rest.size()));
      if (step == "&") {
        found = {found.type};
        continue;
      }
      if (step == "*") {
        const Type& type = types[types.resolve(found.type)];
        if (type.kind != TypeKind::Pointer && type.kind != TypeKind::Array) return lacks(name);
        found = {type.target};
        continue;
      }
      const auto member = types.find_member(defined(types, found.type), step);
      if (!member) return lacks(name);
      found = {member->type, found.bit_offset + member->bit_offset, member->bit_width};
    }
    return found;
  }

 private:
  tl::unexpected<Error> lacks(const KernelName& name) const {
    return refuse(ErrorCode::NotFound, "{} has no member {} in this kernel", name.name, name.path);
  }

  /// The same part of the kernel; a module of one kernel may be built in elsewhere.
  bool same_module(const std::string& wanted, const std::string& found) {
    return wanted == found || (found == "vmlinux" && !kernel_.has_module(wanted));
  }

  Result<KernelVariable> variable(const std::string& module, std::string_view symbol) {
    auto found = kernel_.kernel_variable(module, symbol);
    if (!found && !kernel_.has_module(module)) found = kernel_.kernel_variable("vmlinux", symbol);
    if (found) return *found;
    return refuse(ErrorCode::NotFound, "this kernel has no symbol {}`{}", module, symbol);
  }

  Result<TypeId> root(const KernelName& name) {
    const TypeGraph& types = kernel_.kernel_types();
    const std::string_view text = name.name;
    if (const std::size_t tick = text.find('`'); tick != text.npos) {
      const KernelVariable found = TRY(variable(name.module, text.substr(tick + 1)));
      if (found.type) return *found.type;
      return refuse(ErrorCode::NotFound, "the type of {} is not known in this kernel", text);
    }
    constexpr std::pair<std::string_view, TypeKind> kTags[] = {
        {"struct ", TypeKind::Struct}, {"union ", TypeKind::Union}, {"enum ", TypeKind::Enum}};
    const auto tag = std::ranges::find_if(
        kTags, [&](const auto& known) { return text.starts_with(known.first); });
    const auto found = tag == std::end(kTags)
                           ? types.find(text)
                           : types.find(tag->second, text.substr(tag->first.size()));
    if (!found) {
      return refuse(ErrorCode::NotFound, "this kernel has no {}{}", text, of_module(name.module));
    }
    const std::string module = kernel_.type_module(*found);
    if (same_module(name.module, module)) return *found;
    return refuse(ErrorCode::Unsupported,
                  "{} is {}'s in this kernel and was {}'s where the "
                  "program was compiled: compile it again here",
                  text, module.empty() ? "D" : module, name.module);
  }

  Result<std::uint64_t> enumerator(const KernelName& name) {
    const auto found = kernel_.kernel_types().find_enumerator(name.name);
    if (found && same_module(name.module, kernel_.type_module(found->first))) {
      return static_cast<std::uint64_t>(found->second);
    }
    return refuse(ErrorCode::NotFound, "this kernel has no enumerator {}{}", name.name,
                  of_module(name.module));
  }

  Result<void> check_type(const KernelName& name, const std::optional<Found>& found) {
    if (name.type.empty()) return {};
    std::string here = found ? type_text(kernel_.kernel_types(), found->type) : "of unknown type";
    if (name.kind == Kind::BitOffset && found) here += fmt::format(":{}", found->bit_width);
    if (here == name.type) return {};
    return refuse(ErrorCode::Unsupported,
                  "{} is {} here and {} where the program was compiled: compile it again here",
                  describe(name), here, name.type);
  }

  Result<std::uint64_t> value_of(const KernelName& name) {
    if (name.kind == Kind::Process) return static_cast<std::uint64_t>(kernel_.process());
    if (name.kind == Kind::Enumerator) return enumerator(name);
    if (name.kind == Kind::Symbol) {
      const KernelVariable found = TRY(variable(name.module, name.name));
      TRY(check_type(name, found.type ? std::optional(Found{*found.type}) : std::nullopt));
      return found.address.raw();
    }
    const Found found = TRY(follow(name));
    TRY(check_type(name, found));
    if (name.kind == Kind::Size) return size_of(name, found);
    if (name.kind == Kind::Elements) return elements(name, found);
    if (is_bit_kind(name.kind) != (found.bit_width != 0)) {
      return refuse(ErrorCode::Unsupported,
                    "{} is {} bit-field in this kernel: compile the program again here",
                    describe(name), found.bit_width != 0 ? "a" : "no");
    }
    switch (name.kind) {
      case Kind::Member: return found.bit_offset / 8;
      case Kind::BitOffset: return found.bit_offset;
      default: return bits(name, found);
    }
  }

  Result<std::uint64_t> size_of(const KernelName& name, const Found& found) {
    const std::uint64_t size = value_size(kernel_.kernel_types(), found.type, 0);
    if (size > 0 || name.value == 0) return size;
    return refuse(ErrorCode::NotFound, "{} has no size in this kernel", describe(name));
  }

  /// An array without a length goes on as far as there is room.
  Result<std::uint64_t> elements(const KernelName& name, const Found& found) {
    const TypeGraph& types = kernel_.kernel_types();
    const Type& type = types[types.resolve(found.type)];
    if (type.kind != TypeKind::Array) {
      return refuse(ErrorCode::Unsupported, "{} is no array in this kernel", describe(name));
    }
    if (type.count == 0 || type.count >= name.value) return type.count;
    return refuse(ErrorCode::Unsupported,
                  "{} has {} elements in this kernel, and the code takes number {}", describe(name),
                  type.count, name.value - 1);
  }

  /// Of a field in its aligned unit of memory.
  Result<std::uint64_t> bits(const KernelName& name, const Found& found) {
    const std::uint64_t unit = std::uint64_t{name.unit} * 8;
    if (unit == 0 || unit > 64) return refuse(ErrorCode::Invalid, "{} has no unit", describe(name));
    const std::uint64_t start = found.bit_offset / unit * unit;
    const std::uint64_t shift = found.bit_offset - start;
    if (shift + found.bit_width > unit) {
      return refuse(ErrorCode::Unsupported,
                    "no {} aligned bytes hold {} in this kernel: compile the program again here",
                    name.unit, describe(name));
    }
    if (name.kind == Kind::BitUnit) return start / 8;
    return name.kind == Kind::BitsAbove ? 64 - shift - found.bit_width : 64 - found.bit_width;
  }

  KernelNames& kernel_;
};

/// Leaves a clause what of it is for one machine.
void restrict_to(std::string_view machine, Clause& clause) {
  if (clause.probes.empty()) return;
  std::erase_if(clause.probes,
                [&](const ProbeDescription& probe) { return !is_for(probe, machine); });
  if (!clause.probes.empty()) return;
  clause.predicate.reset();
  clause.actions.clear();
  clause.argument_types.clear();
  clause.names.clear();
}

/// Marks a shape and those that it is made of.
void mark_shape(const std::vector<TypeShape>& shapes, std::uint32_t first,
                std::vector<bool>& marked) {
  std::vector<std::uint32_t> rest = {first};
  while (!rest.empty()) {
    const std::uint32_t index = rest.back();
    rest.pop_back();
    if (index >= shapes.size() || marked[index]) continue;  // the verifier complains of the first
    marked[index] = true;
    rest.push_back(shapes[index].element);
    for (const TypeShape::Member& member : shapes[index].members) rest.push_back(member.shape);
  }
}

class Binder {
 public:
  Binder(const Program& program, KernelNames& kernel, std::string_view machine)
      : program_(program), kernel_(kernel), machine_(machine), finder_(kernel) {}

  Result<Program> run() {
    TRY(check_names());
    Program bound = program_;
    for (Clause& clause : bound.clauses) restrict_to(machine_, clause);
    shown_ = shown_shapes(bound);
    TRY(find_values(bound));
    for (Clause& clause : bound.clauses) {
      TRY(check_arguments(clause));
      clause.argument_types.clear();
      clause.names.clear();
      if (clause.predicate) TRY(fill(*clause.predicate));
      for (Action& action : clause.actions) {
        for (Difo& difo : action.arguments) TRY(fill(difo));
      }
    }
    TRY(fill_shapes(bound.shapes));
    bound.kernel_names.clear();
    return bound;
  }

 private:
  static tl::unexpected<Error> at_line(std::int32_t line, Error error) {
    if (line > 0) error.message = fmt::format("line {}: {}", line, error.message);
    return tl::make_unexpected(std::move(error));
  }

  static std::vector<bool> shown_shapes(const Program& bound) {
    std::vector<bool> shown(bound.shapes.size());
    for (const Clause& clause : bound.clauses) {
      for (const Action& action : clause.actions) {
        for (const std::uint32_t shape : action.shapes) mark_shape(bound.shapes, shape, shown);
      }
    }
    return shown;
  }

  /// The names that this machine needs: those of its clauses, of the types that they show, and of
  /// no clause.
  std::vector<bool> needed_names(const Program& bound) const {
    std::vector<bool> needed(program_.kernel_names.size(), true);
    const auto mark = [&needed](const std::vector<Clause>& clauses, bool value) {
      for (const Clause& clause : clauses) {
        for (const std::uint32_t name : clause.names) {
          if (name < needed.size()) needed[name] = value;
        }
      }
    };
    mark(program_.clauses, false);
    mark(bound.clauses, true);
    for (std::size_t i = 0; i < shown_.size(); ++i) {
      const auto name = bound.shapes[i].kernel_name;
      if (shown_[i] && name && *name < needed.size()) needed[*name] = true;
    }
    return needed;
  }

  Result<void> find_values(const Program& bound) {
    const std::vector<bool> needed = needed_names(bound);
    for (std::size_t i = 0; i < needed.size(); ++i) {
      values_.emplace_back();
      if (!needed[i]) continue;
      const KernelName& name = program_.kernel_names[i];
      auto value = finder_.value(name);
      if (!value) return at_line(name.line, std::move(value).error());
      values_.back() = *value;
    }
    return {};
  }

  /// They are looked up and shown.
  Result<void> check_names() const {
    constexpr std::size_t kLongest = 1024;
    const auto shows = [](const std::string& text) {
      return text.size() <= kLongest &&
             std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7f; });
    };
    if (program_.kernel_names.size() > kMostKernelNames) {
      return refuse(ErrorCode::Limit, "there are more than {} names of the kernel",
                    kMostKernelNames);
    }
    for (const KernelName& name : program_.kernel_names) {
      if (!shows(name.module) || !shows(name.name) || !shows(name.path) || !shows(name.type)) {
        return refuse(ErrorCode::Invalid, "a name of the kernel is no such name");
      }
    }
    return {};
  }

  Result<void> check_arguments(const Clause& clause) {
    for (const ArgumentType& argument : clause.argument_types) {
      for (const ProbeDescription& probe : clause.probes) {
        const KernelNames::Argument found = kernel_.argument(probe, argument.index);
        if (found.matched == 0) continue;
        const std::string here =
            found.type ? type_text(kernel_.kernel_types(), *found.type) : "of unknown type";
        if (here == argument.type) continue;
        return refuse(ErrorCode::Unsupported,
                      "{}args[{}] of {} is {} here and {} where the program was compiled: compile "
                      "it again here",
                      clause.line > 0 ? fmt::format("line {}: ", clause.line) : "", argument.index,
                      probe.to_string(), here, argument.type);
      }
    }
    return {};
  }

  Result<void> fill(Difo& difo) const {
    for (const Relocation& relocation : difo.relocations) {
      const auto wrong = [&] {
        return refuse(ErrorCode::Invalid, "a relocation is of {} {}, name {}, which is not there",
                      relocation.place == Relocation::Place::Integer ? "integer" : "variable",
                      relocation.index, relocation.name);
      };
      if (relocation.name >= values_.size() || !values_[relocation.name]) return wrong();
      const std::uint64_t value = *values_[relocation.name];
      if (relocation.place == Relocation::Place::Integer) {
        if (relocation.index >= difo.integers.size()) return wrong();
        difo.integers[relocation.index] = value;
        continue;
      }
      const bool result = relocation.place == Relocation::Place::Result;
      if (!result && relocation.index >= difo.variables.size()) return wrong();
      ValueType& type = result ? difo.result : difo.variables[relocation.index].type;
      if (value > UINT32_MAX || type.kind != ValueKind::Bytes) return wrong();
      type.size = static_cast<std::uint32_t>(value);
    }
    difo.relocations.clear();
    return {};
  }

  /// Each shape that stands for a type of the kernel becomes that type as this kernel has it.
  Result<void> fill_shapes(std::vector<TypeShape>& shapes) {
    const auto named = std::ranges::count_if(
        program_.shapes, [](const TypeShape& shape) { return shape.kernel_name.has_value(); });
    if (named > std::ptrdiff_t{kMostKernelShapes}) {
      return refuse(ErrorCode::Limit, "there are more than {} types of the kernel to print",
                    kMostKernelShapes);
    }
    ShapeTable table(kernel_.kernel_types(), 0, shapes);
    for (std::size_t i = 0; i < program_.shapes.size(); ++i) {
      const auto index = program_.shapes[i].kernel_name;
      if (!index) continue;
      if (!shown_[i]) {
        shapes[i].kernel_name.reset();
        continue;
      }
      if (*index >= values_.size()) {
        return refuse(ErrorCode::Invalid, "shape {} has no such name of the kernel: {}", i, *index);
      }
      const KernelName& name = program_.kernel_names[*index];
      if (name.kind != Kind::Size) return refuse(ErrorCode::Invalid, "shape {} is no type", i);
      const Found found = TRY(finder_.follow(name));
      const auto made = table.add(found.type);
      if (!made) {
        return refuse(ErrorCode::Unsupported, "{} is nested too deep or has too many parts",
                      describe(name));
      }
      TypeShape shape = shapes[*made];
      shape.kernel_name.reset();
      if (shape.kind != TypeShape::Kind::Array) shape.name = program_.shapes[i].name;
      shapes[i] = std::move(shape);
    }
    return {};
  }

  const Program& program_;
  KernelNames& kernel_;
  const std::string_view machine_;
  Finder finder_;
  std::vector<bool> shown_;                           // the shapes that this machine's clauses use
  std::vector<std::optional<std::uint64_t>> values_;  // of the names that it needs
};

}  // namespace

std::string describe(const KernelName& name) {
  if (name.kind == Kind::Symbol) return fmt::format("{}`{}", name.module, name.name);
  if (name.path.empty()) return name.name;
  return fmt::format("member {} of {}", name.path, name.name);
}

Result<Program> bind(const Program& program, KernelNames& kernel, std::string_view machine) {
  return Binder(program, kernel, machine).run();
}

}  // namespace ringside::dif
