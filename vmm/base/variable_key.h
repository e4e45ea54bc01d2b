// The plain names under which a TypeGraph has the types of a kernel's variables, where the kernel's
// own types tell them (BTF). No type of C is called so. Used to fill the graph and to ask it.
#pragma once

#include <string>
#include <string_view>

namespace ringside {

inline std::string variable_key(std::string_view name) {
  return "variable " + std::string(name);
}
/// Of a variable of which each CPU has its own: the symbol is not its address.
inline std::string percpu_variable_key(std::string_view name) {
  return "per-CPU variable " + std::string(name);
}

}  // namespace ringside
