// One call of a subroutine, as all classes of subroutines see it: the arguments on the tuple stack,
// the result or a fault, and access to strings among them. Fire context: yes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "dif/evaluate/memory.h"
#include "dif/evaluate/variables.h"

namespace ringside::dif {

using CallArguments = std::span<const TupleValue>;
using CallResult = Result<std::uint64_t, Fault>;

/// Valid until the next subroutine is called.
inline Result<std::string_view, Fault> string_argument(Memory& memory, const TupleValue& argument) {
  return memory.another_string(argument.value, memory.string_size());
}

/// A fresh string, cut to what a D string holds.
inline CallResult string_result(Memory& memory, std::string_view text) {
  return memory.new_string(text.substr(0, memory.string_size()));
}

}  // namespace ringside::dif
