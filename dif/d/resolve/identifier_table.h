// The names of a program: variables of the three scopes, inlines, and the built-in names that it
// uses.
#pragma once

#include <array>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dif/d/resolve/identifiers.h"
#include "dif/d/resolve/interface_pragmas.h"
#include "dif/d/syntax/ast.h"
#include "dif/program/builtin.h"
#include "dif/program/program.h"

namespace ringside::d {

/// The thing that a name stands for.
struct Identifier {
  enum class Kind : std::uint8_t { Variable, Builtin, Inline, Subroutine } kind = Kind::Variable;
  std::string name;
  Scope scope = Scope::Global;
  std::uint16_t id = 0;
  TypeId type;
  bool is_associative = false;
  bool is_extern = false;               // declared for a kernel symbol
  std::vector<TypeId> keys;             // of an associative array
  Expr* value = nullptr;                // Inline
  std::vector<std::string> parameters;  // Inline with keys: their names
  dif::Attributes attributes;
  std::optional<dif::SubroutineInfo> subroutine;

  /// Made by the compiler to keep a value, which stays as it was evaluated.
  bool is_hidden_variable() const { return is_hidden_name(name); }
};

/// Identifiers live, at their addresses, as long as the table.
class IdentifierTable {
 public:
  /// `version`: of the D that the program asks for (-x version); empty: ours.
  explicit IdentifierTable(std::optional<Version> version) : version_(version) {}
  IdentifierTable(const IdentifierTable&) = delete;
  IdentifierTable& operator=(const IdentifierTable&) = delete;

  /// Null also where the program asks for a D that does not have the name yet.
  Identifier* find(Scope scope, const std::string& name);
  /// A variable or function of the D that the program asks for: no name for a variable of its own.
  bool is_of_d(const std::string& name) const;
  /// Notes that the program assigns to this name at `at`; `type` is the value's type in D, or
  /// empty. The first place counts.
  void note_assigned(Scope scope, const std::string& name, const Location& at,
                     std::string_view type);
  /// A suggestion for a variable that is used at `at` and does not exist: "; it is assigned later,
  /// at column 9: declare `int s;` before" or "; did you mean NAME?". Empty where nothing is known.
  std::string suggest(Scope scope, const std::string& name, const Location& at) const;
  /// A name of D that came later than the D that the program asks for.
  bool is_hidden(std::string_view name) const;

  /// A variable with an id of its own. D_ID_OFLOW when its scope has no more.
  Checked<Identifier*> add_variable(Scope scope, const std::string& name, const Location& at);
  void add_inline(Identifier identifier);
  Identifier* add_builtin(Identifier identifier);
  /// The one identifier of this subroutine.
  Identifier* subroutine(const dif::SubroutineInfo& info);

  InterfacePragmas& pragmas() { return pragmas_; }

 private:
  Identifier* keep(Identifier identifier);

  struct Assigned {
    Location at;
    std::string type;
  };

  std::optional<Version> version_;
  InterfacePragmas pragmas_;
  std::deque<Identifier> identifiers_;
  std::array<std::unordered_map<std::string, Identifier*>, 3> scopes_;
  std::array<std::unordered_map<std::string, Assigned>, 3> assigned_;
  std::unordered_map<std::string, Identifier*> subroutines_;
  std::array<std::uint16_t, 3> next_id_{dif::kFirstUserVariable, dif::kFirstUserVariable,
                                        dif::kFirstUserVariable};
};

}  // namespace ringside::d
