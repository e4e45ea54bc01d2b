// Declarations outside clauses: typedefs, types, and variables that are declared before their use.
// Inlines are inlines.h's; C's declarators and structures are type_resolver.h's.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dif/d/resolve/identifier_table.h"
#include "dif/d/resolve/type_resolver.h"
#include "dif/d/syntax/ast.h"
#include "dif/d/syntax/diagnostic.h"
#include "dif/d/types/types.h"

namespace ringside::d {

class Declarations {
 public:
  Declarations(const Types& types, IdentifierTable& identifiers, TypeResolver& declared)
      : types_(types), identifiers_(identifiers), declared_(declared) {}

  Checked<void> declare(const Declaration& declaration);
  /// The type that an extern declaration gives the kernel's variable of this name.
  std::optional<TypeId> extern_type(const std::string& name) const;

 private:
  Checked<void> declare_variable(const TypeSpec& spec, const Declarator& declarator, TypeId base);
  Checked<bool> is_declared(Scope scope, const Declarator& declarator, TypeId type,
                            const std::vector<TypeId>& keys) const;

  const Types& types_;
  IdentifierTable& identifiers_;
  TypeResolver& declared_;
  std::unordered_map<std::string, TypeId> unsized_arrays_;  // extern, of unknown length
};

}  // namespace ringside::d
