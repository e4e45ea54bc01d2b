// Names the parts of the guest's kernel that a program contains, so that the program can be bound
// to another kernel or to the next boot. A name tells which type, member, symbol or enumerator an
// offset, size or address belongs to. The code generator asks for names. The resolver marks a name
// as fixed if its value decides what is compiled (an array's length, a key's size).
// Does not: look a name up again; bind() does (dif/bind).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dif/d/resolve/environment.h"
#include "dif/d/syntax/ast.h"
#include "dif/d/types/types.h"
#include "dif/program/program.h"

namespace ringside::d {

class KernelNamer {
 public:
  using Kind = dif::KernelName::Kind;
  using Index = std::uint32_t;  // into Program::kernel_names

  KernelNamer(const Types& types, Environment& environment)
      : types_(types), environment_(environment) {}

  /// The members that an access goes through inside one object of the kernel's: a.b.c.
  struct MemberPath {
    const Expr* first = nullptr;  // the access that begins the path
    std::string module, name, path;
    std::uint64_t bit_offset = 0;  // from the object's beginning
  };
  /// Empty when the object is none of the kernel's, or has no name.
  std::optional<MemberPath> find_member_path(const Expr& access);
  Index name_member(const MemberPath& path, const Expr& access, Kind kind, std::uint64_t value,
                    unsigned unit = 0);
  Index name_symbol(const Expr& e);
  /// The name for a sizeof, an offsetof, an enumerator or a $target whose Expr::late is set.
  std::optional<Index> name_late_constant(const Expr& e);

  /// The size of e's value, of what a pointer or array points at, of a variable of the type; empty
  /// when it is the same everywhere.
  std::optional<Index> name_size(const Expr& e);
  std::optional<Index> name_element_size(const Expr& pointer);
  std::optional<Index> name_size(TypeId type, const Location& at);

  /// The code takes element `position` of an array, whose length `array` has where it is compiled.
  void need_element(const Expr& array, std::uint64_t position);
  /// The code depends on the value of every late constant in `e`, or on the size of `e`.
  void fix_value(const Expr& e);
  void fix_size(const Expr& e);
  /// Gives the shapes of the kernel's types in `shape`, which is of a value of `e`, their names.
  void name_shapes(const Expr& e, Index shape, std::vector<dif::TypeShape>& shapes);

  /// Whether a resolved sizeof, with what it measures in `container`, has another value elsewhere.
  bool is_late_size(const Expr& e) const {
    return depends(e.container) || (e.kind == ExprKind::SizeofExpr && of_value(*e.a));
  }
  bool is_kernel_type(TypeId id) const { return !environment_.type_module(id).empty(); }
  /// The names that were asked for since the last call are those of declarations, so whatever
  /// clauses a machine has, it needs them.
  void note_for_all();
  /// The others that were asked for since the last call: a clause's.
  std::vector<Index> take_used();
  /// Drops the names that a library brought along: they count where the program uses them.
  void forget();
  /// All names since then.
  std::vector<dif::KernelName> take_names();
  /// For each module, one of its types without a name.
  std::vector<dif::KernelNeed> needs() const;

 private:
  struct TypeName {
    std::string module, name, path;
  };
  std::optional<TypeName> of_type(TypeId id) const;
  std::optional<TypeName> of_value(const Expr& e) const;
  std::optional<TypeName> of_element(const Expr& pointer) const;
  static TypeName below(TypeName name, std::string_view step);
  bool depends(TypeId type) const;
  std::optional<Index> named_size(TypeId type, std::optional<TypeName> name, const Location& at);
  Index add(dif::KernelName name, const Location& at);
  void note_unnamed(TypeId type);
  void fix_typedef(TypeId id);
  void fix_layouts();
  void name_shape(TypeId type, std::optional<TypeName> name, Index shape, const Location& at,
                  std::vector<dif::TypeShape>& shapes);

  const Types& types_;
  Environment& environment_;
  std::vector<dif::KernelName> names_;
  using Key = std::tuple<Kind, std::string, std::string, std::string, std::string, unsigned>;
  std::map<Key, Index> known_;
  std::map<std::string, std::string> unnamed_;  // by module: a type, as C spells it
  std::set<Index> seen_shapes_;
  std::set<Index> used_, for_all_;
};

}  // namespace ringside::d
