// json(document, path): one element of a JSON text. The path is that of JavaScript: names with
// dots between them and indices in brackets, "a.b[2].c" or "[0]"; an index may stand after a dot,
// too: "a.b.2.c" or "0". A string's text comes as it stands between its quotes, with its escapes;
// numbers, true, false, null, objects and arrays as they are written. The answer is NULL for an
// element that is not there, and for text that is no JSON as far as it must be read. Only the text
// before the element is read, once, and nothing is allocated but the answer.
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
