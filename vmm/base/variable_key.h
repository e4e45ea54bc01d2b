// The names under which a TypeGraph keeps the types of a kernel's variables, which BTF may have. No
// C type can have such a name. Used to fill the graph and to look up in it.
#pragma once

#include <string>
#include <string_view>

namespace ringside {

inline std::string variable_key(std::string_view name) {
  return "variable " + std::string(name);
}
/// For a per-CPU variable: its symbol is an offset and not its address.
inline std::string percpu_variable_key(std::string_view name) {
  return "per-CPU variable " + std::string(name);
}

}  // namespace ringside
