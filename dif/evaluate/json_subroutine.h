// json(document, path): one element of a JSON text. The path has JavaScript's form: names with dots
// between them and indices in brackets, "a.b[2].c" or "[0]". An index may also stand after a dot:
// "a.b.2.c" or "0". A string's result is the text between its quotes, with its escapes. Numbers,
// true, false, null, objects and arrays are returned as they are written. The result is NULL if the
// element does not exist, or if the text that must be read is not JSON. The text is read once, up
// to the element, and only the result is allocated.
// Fire context: yes.
#pragma once

#include <string_view>

#include "dif/evaluate/subroutine_call.h"

namespace ringside::dif {

/// The function that builtin.def names as json.element.
class JsonSubroutine {
 public:
  explicit JsonSubroutine(Memory& memory) : memory_(memory) {}

  CallResult element(CallArguments a);

 private:
  Memory& memory_;
};

}  // namespace ringside::dif
