// In this file, top to bottom: names of types, of members and constants, of sizes, of shapes.
#include "dif/d/resolve/kernel_namer.h"

#include <algorithm>
#include <iterator>

#include "dif/bind/c_types.h"

namespace ringside::d {
namespace {

bool is_member(const Expr& e) {
  return e.kind == ExprKind::Member || e.kind == ExprKind::Arrow;
}

std::string_view tag_word(const Type& type) {
  if (type.kind == TypeKind::Enum) return "enum ";
  return type.kind == TypeKind::Union || type.is_union ? "union " : "struct ";
}

}  // namespace

// Types

/// By its tag, or by the typedef that an anonymous one goes by. A name that finds another type (a
/// module's own of the same name) is none.
std::optional<KernelNamer::TypeName> KernelNamer::of_type(TypeId id) const {
  const TypeGraph& graph = types_.graph();
  constexpr int kMostSteps = 64;
  for (int step = 0; step < kMostSteps; ++step) {
    const Type& type = graph[id];
    const std::string module = environment_.type_module(id);
    const std::string name(type.name);
    switch (type.kind) {
      case TypeKind::Struct:
      case TypeKind::Union:
      case TypeKind::Enum:
        if (name.empty() || module.empty() || graph.find(type.kind, name) != id) return {};
        return TypeName{module, std::string(tag_word(type)) + name, ""};
      case TypeKind::Typedef:
        if (!module.empty() && graph.find(name) == id &&
            (types_.is_array(id) || (types_.is_struct(id) && types_.at(id).name.empty()))) {
          return TypeName{module, name, ""};
        }
        [[fallthrough]];
      case TypeKind::Const:
      case TypeKind::Volatile:
      case TypeKind::Restrict:
      case TypeKind::Userland: id = type.target; break;
      default: return {};
    }
  }
  return {};
}

KernelNamer::TypeName KernelNamer::below(TypeName name, std::string_view step) {
  if (!name.path.empty()) name.path += '.';
  name.path += step;
  return name;
}

/// Of the value's type where it has a name of its own; else by the way to it.
std::optional<KernelNamer::TypeName> KernelNamer::of_value(const Expr& e) const {
  if (auto name = of_type(e.type)) return name;
  switch (e.kind) {
    case ExprKind::Member:
    case ExprKind::Arrow: {
      if (!is_kernel_type(e.container)) return {};
      auto of = of_type(e.container);
      if (!of) of = e.kind == ExprKind::Arrow ? of_element(*e.a) : of_value(*e.a);
      if (of) return below(std::move(*of), *e.text);
      return {};
    }
    case ExprKind::Index: return e.identifier == nullptr ? of_element(*e.a) : std::nullopt;
    case ExprKind::Unary: return e.op == Op::Deref ? of_element(*e.a) : std::nullopt;
    case ExprKind::KernelSymbol: {
      if (e.container == TypeId{}) return {};
      const std::string_view symbol = std::string_view(*e.text).substr(e.text->rfind('`') + 1);
      return TypeName{*e.module, *e.module + '`' + std::string(symbol), ""};
    }
    case ExprKind::Comma: return of_value(*e.b);
    default: return {};
  }
}

std::optional<KernelNamer::TypeName> KernelNamer::of_element(const Expr& pointer) const {
  if (auto name = of_type(types_.referent(types_.decay(pointer.type)))) return name;
  const bool address = pointer.kind == ExprKind::Unary && pointer.op == Op::AddressOf;
  if (address) return of_value(*pointer.a);
  auto of = of_value(pointer);
  if (!of) return {};
  return below(std::move(*of), "*");
}

/// Its size is the kernel's to say.
bool KernelNamer::depends(TypeId type) const {
  if (types_.is_struct(type)) return is_kernel_type(types_.graph().resolve(type));
  return types_.is_array(type) && is_kernel_type(types_.graph().resolve(type));
}

void KernelNamer::note_unnamed(TypeId type) {
  const std::string module = environment_.type_module(types_.graph().resolve(type));
  if (!module.empty()) unnamed_.emplace(module, types_.name(type));
}

KernelNamer::Index KernelNamer::add(dif::KernelName name, const Location& at) {
  Key key(name.kind, name.module, name.name, name.path, name.type, name.unit);
  const auto [known, fresh] = known_.emplace(std::move(key), static_cast<Index>(names_.size()));
  if (fresh) {
    name.line = at.file == 0 ? at.line : 0;
    names_.push_back(std::move(name));
  }
  used_.insert(known->second);
  return known->second;
}

// Members and constants

std::optional<KernelNamer::MemberPath> KernelNamer::find_member_path(const Expr& access) {
  if (!is_kernel_type(access.container)) return {};
  MemberPath made;
  made.first = &access;
  made.path = *access.text;
  made.bit_offset = access.member.bit_offset;
  while (made.first->kind == ExprKind::Member && is_member(*made.first->a) &&
         is_kernel_type(made.first->a->container)) {
    made.first = made.first->a;
    made.path = *made.first->text + '.' + made.path;
    made.bit_offset += made.first->member.bit_offset;
  }
  auto of = of_type(made.first->container);
  if (!of) {
    const Expr& base = *made.first->a;
    of = made.first->kind == ExprKind::Arrow ? of_element(base) : of_value(base);
    if (of && !of->path.empty() && !of->path.ends_with('*')) *of = below(std::move(*of), "&");
  }
  if (!of) {
    note_unnamed(made.first->container);
    return {};
  }
  made.module = std::move(of->module);
  made.name = std::move(of->name);
  if (!of->path.empty()) made.path = of->path + '.' + made.path;
  return made;
}

KernelNamer::Index KernelNamer::name_member(const MemberPath& path, const Expr& access, Kind kind,
                                            std::uint64_t value, unsigned unit) {
  dif::KernelName name;
  name.kind = kind;
  name.module = path.module;
  name.name = path.name;
  name.path = path.path;
  name.type = dif::type_text(types_.graph(), access.type);
  if (kind == Kind::BitOffset) name.type += ':' + std::to_string(access.member.bit_width);
  name.value = value;
  name.unit = static_cast<std::uint8_t>(unit);
  const Index index = add(std::move(name), access.at);
  if (kind == Kind::BitOffset) names_[index].fixed = true;  // asked for where nothing else will do
  return index;
}

KernelNamer::Index KernelNamer::name_symbol(const Expr& e) {
  dif::KernelName name;
  name.kind = Kind::Symbol;
  name.module = *e.module;
  name.name = e.text->substr(e.text->rfind('`') + 1);
  if (e.container != TypeId{}) name.type = dif::type_text(types_.graph(), e.container);
  return add(std::move(name), e.at);
}

std::optional<KernelNamer::Index> KernelNamer::name_late_constant(const Expr& e) {
  dif::KernelName name;
  name.value = e.constant.value_or(0);
  if (e.kind == ExprKind::Integer) {
    name.kind = Kind::Process;
    name.name = "$target";
    return add(std::move(name), e.at);
  }
  if (e.kind == ExprKind::Name) {
    name.kind = Kind::Enumerator;
    name.module = environment_.type_module(e.container);
    name.name = *e.text;
    return add(std::move(name), e.at);
  }
  const auto of = e.kind == ExprKind::SizeofExpr ? of_value(*e.a) : of_type(e.container);
  if (!of) {
    note_unnamed(e.container);
    return {};
  }
  name.kind = e.kind == ExprKind::Offsetof ? Kind::Member : Kind::Size;
  name.module = of->module;
  name.name = of->name;
  name.path = e.kind == ExprKind::Offsetof ? *e.text : of->path;
  return add(std::move(name), e.at);
}

void KernelNamer::fix_value(const Expr& e) {
  if (!e.late) return;
  const bool leaf = e.kind == ExprKind::Integer || e.kind == ExprKind::Name ||
                    e.kind == ExprKind::SizeofType || e.kind == ExprKind::SizeofExpr ||
                    e.kind == ExprKind::Offsetof;
  if (leaf) {
    if (const auto index = name_late_constant(e)) names_[*index].fixed = true;
    return;
  }
  for (const Expr* part : {e.a, e.b, e.c}) {
    if (part != nullptr) fix_value(*part);
  }
}

/// Notes a number's type by the kernel's name for it, as fixed: a declaration or cast keeps the
/// size that it was compiled with.
void KernelNamer::fix_typedef(TypeId id) {
  const std::string module = environment_.type_module(id);
  if (module.empty()) return;
  dif::KernelName name;
  name.kind = Kind::Size;
  name.module = module;
  name.name = types_.graph()[id].name;
  name.type = dif::type_text(types_.graph(), id);
  name.value = types_.measure(id);
  names_[add(std::move(name), {})].fixed = true;
}

// Sizes

std::optional<KernelNamer::Index> KernelNamer::named_size(TypeId type, std::optional<TypeName> name,
                                                          const Location& at) {
  if (name) {
    return add({.kind = Kind::Size,
                .module = std::move(name->module),
                .name = std::move(name->name),
                .path = std::move(name->path),
                .type = {},
                .value = types_.measure(type)},
               at);
  }
  if (depends(type)) {
    note_unnamed(type);
  } else {
    types_.size(type);  // a D type's, which may be made of the kernel's
  }
  return {};
}

std::optional<KernelNamer::Index> KernelNamer::name_size(TypeId type, const Location& at) {
  if (!types_.is_struct(type) && !types_.is_array(type)) return {};
  return named_size(type, depends(type) ? of_type(type) : std::nullopt, at);
}

std::optional<KernelNamer::Index> KernelNamer::name_size(const Expr& e) {
  if (!types_.is_struct(e.type) && !types_.is_array(e.type)) return {};
  return named_size(e.type, of_value(e), e.at);
}

std::optional<KernelNamer::Index> KernelNamer::name_element_size(const Expr& pointer) {
  const TypeId element = types_.referent(types_.decay(pointer.type));
  if (!types_.is_struct(element) && !types_.is_array(element)) return {};
  return named_size(element, of_element(pointer), pointer.at);
}

void KernelNamer::need_element(const Expr& array, std::uint64_t position) {
  if (!types_.is_array(array.type) || position >= types_.at(array.type).count) return;
  auto of = of_value(array);
  if (!of) return;
  dif::KernelName& name = names_[add({.kind = Kind::Elements,
                                      .module = std::move(of->module),
                                      .name = std::move(of->name),
                                      .path = std::move(of->path)},
                                     array.at)];
  name.value = std::max(name.value, position + 1);
}

void KernelNamer::fix_size(const Expr& e) {
  if (const auto index = name_size(e)) names_[*index].fixed = true;
}

// Shapes

void KernelNamer::name_shape(TypeId type, std::optional<TypeName> name, Index shape,
                             const Location& at, std::vector<dif::TypeShape>& shapes) {
  const TypeId resolved = types_.graph().resolve(type);
  const bool has_parts = types_.is_struct(resolved) || types_.is_array(resolved);
  if (!has_parts && types_.kind(resolved) != TypeKind::Enum) return;
  if (shapes[shape].kernel_name || !seen_shapes_.insert(shape).second) return;
  if (name || is_kernel_type(resolved)) {
    if (!name) return note_unnamed(type);
    shapes[shape].kernel_name = named_size(type, std::move(name), at);
    return;
  }
  if (types_.is_array(resolved)) {
    const TypeId element = types_.referent(resolved);
    return name_shape(element, of_type(element), shapes[shape].element, at, shapes);
  }
  const auto members = types_.graph().members(resolved);
  for (std::size_t i = 0; i < members.size() && i < shapes[shape].members.size(); ++i) {
    const TypeId part = members[i].type;
    name_shape(part, of_type(part), shapes[shape].members[i].shape, at, shapes);
  }
}

void KernelNamer::name_shapes(const Expr& e, Index shape, std::vector<dif::TypeShape>& shapes) {
  name_shape(e.type, of_value(e), shape, e.at, shapes);
}

// The end

void KernelNamer::forget() {
  names_.clear();
  known_.clear();
  unnamed_.clear();
  used_.clear();
  for_all_.clear();
}

/// Sizes that the types were asked for unseen.
void KernelNamer::fix_layouts() {
  for (const TypeId type : types_.used_layouts()) {
    if (types_.is_integer(type)) fix_typedef(type);
    if (!depends(type)) continue;
    if (const auto index = named_size(type, of_type(type), {})) names_[*index].fixed = true;
  }
}

void KernelNamer::note_for_all() {
  fix_layouts();
  for_all_.merge(used_);
  used_.clear();
}

std::vector<KernelNamer::Index> KernelNamer::take_used() {
  fix_layouts();
  std::vector<Index> used;
  std::ranges::set_difference(used_, for_all_, std::back_inserter(used));
  used_.clear();
  return used;
}

std::vector<dif::KernelName> KernelNamer::take_names() {
  fix_layouts();
  return std::move(names_);
}

std::vector<dif::KernelNeed> KernelNamer::needs() const {
  std::vector<dif::KernelNeed> result;
  for (const auto& [module, type] : unnamed_)
    result.push_back({.module = module, .type = type, .release = {}, .build = {}});
  return result;
}

}  // namespace ringside::d
