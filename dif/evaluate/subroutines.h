// The subroutines that DIF calls. Arguments come from the tuple stack as they were pushed;
// strings are looked at where they lie, results are made in scratch.
// Fire context: yes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "dif/evaluate/builtin_variables.h"
#include "dif/evaluate/variables.h"
#include "dif/program/builtin.h"

namespace ringside::dif {

class Speculations;

class Subroutines {
 public:
  /// Both must outlive this. The guest is the one of `builtins`' firing.
  Subroutines(Memory& memory, BuiltinVariables& builtins);

  /// Where speculation() gets its ids, under the program lock; without, it is an illegal operation.
  void set_speculations(Speculations& speculations, SharedAccess& access) {
    speculations_ = &speculations;
    access_ = &access;
  }

  /// strtok() has nothing to go on with.
  void begin_firing() { token_rest_ = {}; }

  /// A call of the wrong number of arguments, or of a subroutine that is Missing, is an illegal
  /// operation; the verifier refuses the latter by name.
  Result<std::uint64_t, Fault> call(Subroutine which, std::span<const TupleValue> arguments);

 private:
  using Arguments = std::span<const TupleValue>;
  using Answer = Result<std::uint64_t, Fault>;

  // The functions that builtin.def names in its column `call`, by file.
  // subroutines.cc
  Answer rand(Arguments a);
  Answer speculation(Arguments a);
  Answer missing(Arguments a);
  Answer allocate(Arguments a);
  Answer swap16(Arguments a);
  Answer swap32(Arguments a);
  Answer swap64(Arguments a);
  Answer bcopy(Arguments a);
  Answer lltostr(Arguments a);
  Answer strtoll(Arguments a);
  // guest_subroutines.cc
  Answer copyin(Arguments a);
  Answer copyinstr(Arguments a);
  Answer copyinto(Arguments a);
  Answer copyout(Arguments a);
  Answer copyoutstr(Arguments a);
  Answer progenyof(Arguments a);
  Answer lock(LockFact which, Arguments a) const { return builtins_.lock(which, a[0].value); }
  Answer mutex_owned(Arguments a);
  Answer mutex_owner(Arguments a) { return lock(LockFact::Owner, a); }
  Answer mutex_type_adaptive(Arguments a) { return lock(LockFact::Adaptive, a); }
  Answer mutex_type_spin(Arguments a) { return lock(LockFact::Spins, a); }
  Answer rw_read_held(Arguments a) { return lock(LockFact::ReadHeld, a); }
  Answer rw_write_held(Arguments a) { return lock(LockFact::WriteHeld, a); }
  Answer rw_iswriter(Arguments a) { return lock(LockFact::HasWriter, a); }
  Answer getmajor(Arguments a);
  Answer getminor(Arguments a);
  // address_subroutines.cc
  Answer inet_ntoa(Arguments a);
  Answer inet_ntoa6(Arguments a);
  Answer inet_ntop(Arguments a);
  Answer link_ntop(Arguments a);
  // json_subroutine.cc
  Answer json(Arguments a);
  // string_subroutines.cc
  Answer strlen(Arguments a);
  Answer strjoin(Arguments a);
  Answer strchr(Arguments a);
  Answer strrchr(Arguments a);
  Answer strstr(Arguments a);
  Answer strtok(Arguments a);
  Answer substr(Arguments a);
  Answer index(Arguments a);
  Answer rindex(Arguments a);
  Answer toupper(Arguments a) { return change_case(a, 'a', 'z'); }
  Answer tolower(Arguments a) { return change_case(a, 'A', 'Z'); }
  Answer memstr(Arguments a);
  // path_subroutines.cc
  Answer basename(Arguments a);
  Answer dirname(Arguments a);
  Answer cleanpath(Arguments a);

  Answer mutex_type(Arguments a, bool adaptive);
  Answer lock_word(const TupleValue& lock);
  Answer change_case(Arguments a, char first, char last);
  Answer unescaped(std::string_view inside);

  Result<std::string_view, Fault> text(const TupleValue& argument) {
    return memory_.another_string(argument.value, memory_.string_size());
  }
  /// A fresh string, cut to what a D string holds.
  Answer answer(std::string_view text) {
    return memory_.new_string(text.substr(0, memory_.string_size()));
  }

  Memory& memory_;
  BuiltinVariables& builtins_;
  Speculations* speculations_ = nullptr;
  SharedAccess* access_ = nullptr;  // with speculations_
  std::uint64_t random_;
  LazyMemory token_memory_;
  std::span<char> token_text_;   // strtok()'s own copy
  std::string_view token_rest_;  // its part that strtok(NULL, ...) goes on with; null: nothing
};

}  // namespace ringside::dif
