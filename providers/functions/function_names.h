// Functions by their names: those that a probe description asks for, and the forms that GCC makes
// of a function of the source. The forms are foo.isra.0 (with parameters or the result changed or
// dropped), foo.constprop.0 (for constant arguments), foo.part.0 (without its beginning, which its
// callers have inside) and foo.cold (its rarely run instructions, which it jumps to), and
// combinations of these: foo.constprop.0.isra.0. Pure. Used by the providers that stand on
// functions.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dif/program/probe_description.h"
#include "vmm/linux/kernel.h"

namespace ringside::providers {

struct FunctionForm {
  std::string_view source;  // "foo"; a view into the symbol's name. Empty: it is no such form
  bool is_isra = false;     // each: somewhere in its name
  bool is_constprop = false;
  bool is_part = false;
  bool is_cold = false;
};
FunctionForm function_form(std::string_view symbol);

/// How a form's arguments relate to the source's, as a sentence: "foo.isra.0 is ...".
std::string describe_form(std::string_view symbol, const FunctionForm& form);

/// Functions of the source that a kernel has in such forms only. Cold code alone is none.
class SourceNames {
 public:
  struct Function {
    std::size_t symbol = 0;  // index of the form
    std::string source;
  };
  explicit SourceNames(const guest_linux::SymbolTable& symbols)
      : SourceNames(symbols, symbols.symbols()) {}
  /// For only these symbols of the table; indices count within `of`.
  SourceNames(const guest_linux::SymbolTable& symbols, std::span<const guest_linux::Symbol> of);

  /// In the order of the symbols. A source that has several forms is there several times.
  const std::vector<Function>& functions() const { return functions_; }

 private:
  std::vector<Function> functions_;
};

/// Visits, by index, those symbols of text that the pattern's module and function match, in the
/// order of their addresses. All aliases of a function are visited.
void for_each_function(const guest_linux::SymbolTable& symbols,
                       const dif::ProbeDescription& pattern,
                       const std::function<void(std::size_t)>& visit);

}  // namespace ringside::providers
