// Finds variables of a thread (self->) in which a program keeps an argument from a call's entry to
// its return: "entry { self->path = arg1; } return { trace(copyinstr(self->path)); }". Where the
// argument itself can still be found at the return, a trap there can be recorded (record_needs.h).
//
// Such a variable holds the argument, or 0. So nothing else may be stored in it between the two:
// besides constants of 0, only clauses at entries of the same provider store it, and a thread is in
// one call at a time. And the clause at this entry stores it whatever happens: it has no predicate,
// and nothing before the store may fail. Used by the engine. Pure. Fire context: no.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "dif/program/program.h"
#include "dif/verify/record_needs.h"

namespace ringside::dif {

class KeptArgumentFinder {
 public:
  explicit KeptArgumentFinder(const Program& program);

  /// At a call's return, where `at_entry` are the clauses at its entry, in the order in which they
  /// run (indices into Program::clauses).
  KeptArguments find(std::string_view provider, std::span<const std::uint32_t> at_entry) const;
  /// Whether there may be any.
  bool any() const { return any_; }

 private:
  struct Store {
    std::uint16_t variable = 0;
    enum class Value : std::uint8_t { Zero, Argument, Other } value = Value::Other;
    std::uint16_t argument = 0;
  };
  struct Stores {
    std::vector<Store> all;
    /// If all of its probes are entries of one provider: its name.
    std::string_view provider{};
  };
  static Stores stores_of(const Clause& clause);
  static bool add_stores(std::vector<Store>& stores, const Difo& difo, bool is_certain);
  bool holds_nothing_else(std::uint16_t variable, std::string_view provider) const;

  std::vector<Stores> clauses_;
  bool any_ = false;
};

}  // namespace ringside::dif
