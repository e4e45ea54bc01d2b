// The names of a D program: D's own, with their stability and the version of D that brought them;
// variables of the three scopes, inlines, and the built-in names that the program uses; and what
// pragmas say of names. Used by the resolver, also for -x version, -x amin and clauses' attributes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dif/d/syntax/ast.h"
#include "dif/d/syntax/diagnostic.h"
#include "dif/program/builtin.h"
#include "dif/program/program.h"
#include "dif/program/stability.h"
#include "vmm/base/similar_name.h"

namespace ringside::d {

using Version = std::array<unsigned, 3>;

struct IdentifierInfo {
  std::string_view name;
  dif::Attributes attributes;
  Version since{1, 0, 0};
};

/// The stability and version of a built-in variable, subroutine or action; Stable/Stable/Common and
/// 1.0 for most.
IdentifierInfo identifier_info(std::string_view name);

/// The name of what stands in a clause and gives no value: an action or an aggregating function.
bool is_action(std::string_view name);
/// That, or the name of a subroutine of dtrace: no name for a variable.
bool is_function_name(std::string_view name);

/// The function of D that is nearest to an unknown name; empty if none is near.
std::string similar_function(std::string_view name);
void offer_variables(SimilarName& similar);

/// "1.2" or "1.2.3"; empty when it is none.
std::optional<Version> parse_version(std::string_view text);

/// The stability of the kernel's own types and symbols, and of names without a promise.
inline constexpr dif::Attributes kPrivate{dif::Stability::Private, dif::Stability::Private,
                                          dif::DependencyClass::Unknown};

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

/// The statements of `#pragma D attributes` and `#pragma D binding` about names: their stability,
/// and the version of D that brought them. A pragma may come before or after its name.
class InterfacePragmas {
 public:
  void add_attributes(const std::string& name, const Location& at, const dif::Attributes& are);
  void add_binding(const std::string& name, const Location& at, Version since);
  /// Gives a global identifier what was said of its name.
  void apply(Identifier& identifier);
  /// Forgets what was said of a name that nothing will have.
  void drop(const std::string& name) { pending_.erase(name); }

  /// Whether an identifier is bound to a later D than this one.
  bool is_later(const std::string& name, const Version& version) const;
  void forget_binding(const std::string& name) { bindings_.erase(name); }

  /// D_PRAGMA_UNUSED for a pragma of the program's own whose name nothing has.
  Checked<void> check_unused() const;

 private:
  struct Pending {
    Location at;
    std::optional<dif::Attributes> attributes;
    std::optional<Version> binding;
  };
  std::map<std::string, Pending> pending_;  // for names that are not declared yet
  std::unordered_map<std::string, Version> bindings_;
};

/// Identifiers live, at their addresses, as long as the table.
class IdentifierTable {
 public:
  /// `version`: of the D that the program asks for (-x version); empty: ours.
  explicit IdentifierTable(std::optional<Version> version) : version_(version) {}
  IdentifierTable(const IdentifierTable&) = delete;
  IdentifierTable& operator=(const IdentifierTable&) = delete;

  /// Null also where the program asks for a D that does not have the name yet.
  Identifier* find_identifier(Scope scope, const std::string& name) const;
  /// A variable or function of the D that the program asks for: no name for a variable of its own.
  bool is_of_d(const std::string& name) const;
  /// Notes that the program assigns to this name at `at`; `type` is the value's type in D, or
  /// empty. The first place counts.
  void note_assigned(Scope scope, const std::string& name, const Location& at,
                     std::string_view type);
  /// A suggestion for a variable that is used at `at` and does not exist: "; it is assigned later,
  /// at column 9: declare `int s;` before" or "; did you mean NAME?". Empty where nothing is known.
  std::string suggest_similar(Scope scope, const std::string& name, const Location& at) const;
  /// A name of D that came later than the D that the program asks for.
  bool is_hidden(std::string_view name) const;

  /// A variable with an id of its own. D_ID_OFLOW when its scope has no more.
  Checked<Identifier*> add_variable(Scope scope, const std::string& name, const Location& at);
  void add_inline(Identifier identifier);
  Identifier* add_builtin(Identifier identifier);
  /// The one identifier of this subroutine.
  Identifier* subroutine(const dif::SubroutineInfo& info);

  /// Notes an extern declaration of an array of unknown length: of the kernel's symbol. There is no
  /// such variable in D.
  void note_extern_array(const std::string& name, TypeId type) { extern_arrays_[name] = type; }
  /// The type that an extern declaration gives the kernel's variable of this name.
  std::optional<TypeId> find_extern_type(const std::string& name) const;

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
  std::unordered_map<std::string, TypeId> extern_arrays_;
  std::array<std::uint16_t, 3> next_id_{dif::kFirstUserVariable, dif::kFirstUserVariable,
                                        dif::kFirstUserVariable};
};

/// The stability of the names that a clause uses.
class StabilityNotes {
 public:
  /// `minimum`: the attributes that -x amin asks for. The identifiers tell which functions there
  /// are.
  StabilityNotes(const IdentifierTable& identifiers, std::optional<dif::Attributes> minimum)
      : identifiers_(identifiers), minimum_(minimum) {}

  /// A name is used. D_ATTR_MIN where its attributes are below the minimum.
  Checked<void> note(const dif::Attributes& attributes, std::string_view name, const Location& at);
  /// An action, aggregating function or subroutine is used. D_FUNC_UNDEF where the program asks for
  /// a D without it.
  Checked<void> note_function(std::string_view name, const Location& at);

  /// The least of the attributes that were noted since the last call.
  dif::Attributes take() { return std::exchange(least_, dif::Attributes{}); }
  /// For expressions that are only looked at: the names in them do not count.
  dif::Attributes save() const { return least_; }
  void restore(const dif::Attributes& saved) { least_ = saved; }

 private:
  const IdentifierTable& identifiers_;
  std::optional<dif::Attributes> minimum_;
  dif::Attributes least_;
};

}  // namespace ringside::d
