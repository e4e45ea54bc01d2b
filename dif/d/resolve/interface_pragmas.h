// The statements of `#pragma D attributes` and `#pragma D binding` about names: their stability,
// and the version of D that brought them. A pragma may come before or after its name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "dif/d/resolve/identifiers.h"
#include "dif/d/syntax/diagnostic.h"

namespace ringside::d {

struct Identifier;

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

}  // namespace ringside::d
