// The subroutines that DIF calls. Arguments come from the tuple stack as they were pushed;
// strings are looked at where they lie, results are made in scratch.
// Fire context: yes.
#pragma once

#include <cstdint>
#include <span>

#include "dif/builtin.h"
#include "dif/variables.h"

namespace ringside::dif {

class Subroutines {
 public:
  explicit Subroutines(Memory& memory);

  /// Scratch is gone: strtok() has nothing to go on with.
  void begin_clause() { token_cursor_ = 0; }

  /// A call of the wrong number of arguments, or of a subroutine that is Missing, is an illegal
  /// operation; the verifier refuses the latter by name.
  Result<std::uint64_t, Fault> call(Subroutine which, std::span<const TupleValue> arguments);

 private:
  using Arguments = std::span<const TupleValue>;
  using Answer = Result<std::uint64_t, Fault>;

  // subroutines.cc
  Answer random();
  Answer copyin(Arguments a);
  Answer copyinstr(Arguments a);
  Answer copyinto(Arguments a);
  Answer bcopy(Arguments a);
  Answer inet_ntoa(Arguments a);
  Answer lltostr(Arguments a);
  Answer strtoll(Arguments a);
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
  Answer change_case(Arguments a, char first, char last);
  // path_subroutines.cc
  Answer basename(Arguments a);
  Answer dirname(Arguments a);
  Answer cleanpath(Arguments a);

  Result<std::string_view, Fault> text(const TupleValue& argument) {
    return memory_.string(argument.value, memory_.string_size());
  }
  /// A fresh string, cut to what a D string holds.
  Answer answer(std::string_view text) {
    return memory_.new_string(text.substr(0, memory_.string_size() - 1));
  }

  Memory& memory_;
  std::uint64_t random_;
  std::uint64_t token_cursor_ = 0;  // what strtok(NULL, ...) goes on with; 0: nothing
};

}  // namespace ringside::dif
