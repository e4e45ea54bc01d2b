// The subroutines about strings. strchr, strrchr and strstr return a position in the original
// string, wherever that string lies. Fire context: yes, but for the constructor.
#pragma once

#include <span>
#include <string_view>

#include "dif/evaluate/lazy_memory.h"
#include "dif/evaluate/subroutine_call.h"

namespace ringside::dif {

/// The functions that builtin.def names as strings.NAME.
class StringSubroutines {
 public:
  explicit StringSubroutines(Memory& memory);

  /// strtok() has nothing to go on with.
  void begin_firing() { token_rest_ = {}; }

  CallResult strlen(CallArguments a);
  CallResult strjoin(CallArguments a);
  CallResult strchr(CallArguments a);
  CallResult strrchr(CallArguments a);
  CallResult strstr(CallArguments a);
  CallResult strtok(CallArguments a);
  CallResult substr(CallArguments a);
  CallResult index(CallArguments a);
  CallResult rindex(CallArguments a);
  CallResult toupper(CallArguments a) { return change_case(a, 'a', 'z'); }
  CallResult tolower(CallArguments a) { return change_case(a, 'A', 'Z'); }
  CallResult memstr(CallArguments a);

 private:
  CallResult change_case(CallArguments a, char first, char last);

  Memory& memory_;
  LazyMemory token_memory_;
  std::span<char> token_text_;   // strtok()'s own copy
  std::string_view token_rest_;  // its part that strtok(NULL, ...) goes on with; null: nothing
};

}  // namespace ringside::dif
