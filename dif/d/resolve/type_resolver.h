// C types of the program's own: specifiers, declarators, structures, enumerations, typedefs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dif/bind/kernel_names.h"
#include "dif/d/resolve/identifier_table.h"
#include "dif/d/syntax/ast.h"
#include "dif/d/types/struct_layout.h"
#include "dif/d/types/types.h"

namespace ringside::d {

class Resolver;

class TypeResolver {
 public:
  /// All must outlive this. Types are added to the graph of `types`.
  /// Sizes of arrays, widths of bit-fields and values of enumerators are expressions of the
  /// resolver.
  TypeResolver(Types& types, IdentifierTable& identifiers, Resolver& expressions,
               dif::KernelNames& kernel)
      : types_(types),
        identifiers_(identifiers),
        expressions_(expressions),
        kernel_(kernel),
        alignments_(types) {}

  enum class Unsized : std::uint8_t { Refused, Allowed };  // int x[]

  /// The type that the words before the declarators name. A structure or enumeration that they
  /// define is added once, however often this is asked.
  Checked<TypeId> resolve_specifiers(TypeSpec& spec);
  /// Applies the declarator's derivations to `base`. The keys of an associative array are left for
  /// resolve_key_types(), where they are allowed.
  Checked<TypeId> apply_declarator(TypeId base, const Declarator& declarator,
                                   bool keys_allowed = false, Unsized unsized = Unsized::Allowed);
  /// The type that a cast, sizeof or parameter names.
  Checked<TypeId> resolve_type_name(Declaration& declaration);
  /// The types of an associative array's keys, or of an inline's parameters.
  Checked<std::vector<TypeId>> resolve_key_types(const Declarator& declarator);
  Checked<void> declare_typedef(const Declarator& declarator, TypeId base);

  bool is_typedef(const std::string& name) const { return typedefs_.contains(name); }
  /// The program's own type of this name, else the guest's.
  std::optional<TypeId> find_type(const std::string& name) const;
  /// The same of a name as a provider writes it, which may be "struct name".
  std::optional<TypeId> find_named_type(std::string_view name) const;
  /// The program's own enumerator: its type and value.
  std::optional<std::pair<TypeId, std::int64_t>> find_enumerator(const std::string& name) const;
  bool is_own_tag(TypeKind kind, std::string_view name) const {
    return tags_.contains({kind, std::string(name)});
  }
  /// The definition of what is only declared, if there is one: a structure that is declared in one
  /// module and defined in another has the same name there.
  TypeId completed(TypeId type) const;

 private:
  Checked<TypeId> base_type(const TypeSpec& spec);
  Checked<TypeId> integer_type(const TypeSpec& spec);
  Checked<TypeId> struct_type(TypeSpec& spec);
  Checked<void> add_members(StructLayout& layout, const Declaration& declaration);
  Checked<void> add_member(StructLayout& layout, const Declarator& declarator, TypeId type);
  Checked<TypeId> enum_type(const TypeSpec& spec);
  Checked<std::int64_t> enumerator_value(const EnumeratorSpec& enumerator, std::int64_t next);
  Checked<void> declare_enumerator(const EnumeratorSpec& enumerator, std::int64_t value);
  Checked<TypeId> tag_type(TypeKind kind, const TypeSpec& spec);
  Checked<TypeId> scoped_type(TypeKind kind, const TypeSpec& spec) const;
  bool is_in_scope(TypeId type, std::string_view scope) const;

  Checked<TypeId> array_type(TypeId base, const Declarator& declarator, const Derivation& step,
                             Unsized unsized);
  Checked<std::int64_t> array_count(const Declarator& declarator, const Derivation& step,
                                    Unsized unsized);
  Checked<TypeId> function_type(TypeId result, const Derivation& step, const Location& at);

  Types& types_;
  IdentifierTable& identifiers_;
  Resolver& expressions_;
  dif::KernelNames& kernel_;
  Alignments alignments_;
  std::unordered_map<std::string, TypeId> typedefs_;
  std::map<std::pair<TypeKind, std::string>, TypeId> tags_;
  std::unordered_map<std::string, std::pair<TypeId, std::int64_t>> enumerators_;
};

}  // namespace ringside::d
