#include "dif/d/resolve/interface_pragmas.h"

#include <fmt/format.h>

#include "dif/d/resolve/identifier_table.h"

namespace ringside::d {

void InterfacePragmas::add_attributes(const std::string& name, const Location& at,
                                      const dif::Attributes& are) {
  pending_[name].at = at;
  pending_[name].attributes = are;
}

void InterfacePragmas::add_binding(const std::string& name, const Location& at, Version since) {
  pending_[name].at = at;
  pending_[name].binding = since;
}

void InterfacePragmas::apply(Identifier& identifier) {
  const auto at = pending_.find(identifier.name);
  if (at == pending_.end()) return;
  if (at->second.attributes) identifier.attributes = *at->second.attributes;
  if (at->second.binding) bindings_[identifier.name] = *at->second.binding;
  pending_.erase(at);
}

bool InterfacePragmas::is_later(const std::string& name, const Version& version) const {
  const auto bound = bindings_.find(name);
  return bound != bindings_.end() && bound->second > version;
}

Checked<void> InterfacePragmas::check_unused() const {
  for (const auto& [name, pragma] : pending_) {
    if (pragma.at.file != 0) continue;
    return complain(
        "D_PRAGMA_UNUSED", pragma.at,
        fmt::format("unused #pragma {} {}", pragma.attributes ? "attributes" : "binding", name));
  }
  return {};
}

}  // namespace ringside::d
