// One complaint about a D program: dtrace's tag, the text, and where. Used by every phase of the
// compiler; rendered once, at the end. Prints nothing itself.
// Fire context: no.
#pragma once

#include <string>
#include <string_view>

#include "vmm/base/result.h"

namespace ringside::d {

/// A place in the source. `line` is what messages say (cpp's # markers change it); `source_line`
/// counts the lines of the text that was compiled, and finds the one to show. All from 1; columns
/// count bytes.
struct Location {
  int line = 1;
  int column = 1;
  int source_line = 1;
  int file = 0;  // 0: the program; n: CompileOptions::libraries[n - 1]
};

struct Diagnostic {
  std::string_view tag;  // "D_SYNTAX": always a literal
  std::string text;
  Location at;
};

/// The result of a compiler phase.
template <class T>
using Checked = Result<T, Diagnostic>;

inline tl::unexpected<Diagnostic> complain(std::string_view tag, const Location& at,
                                           std::string text) {
  return tl::unexpected<Diagnostic>(Diagnostic{tag, std::move(text), at});
}

/// "line N: text", the source line and a caret, as compile.h promises; with `"file", ` in front
/// when `file` names a library. Bytes that a terminal would obey are shown as \xNN, and a long
/// line is cut to the part around the column.
std::string render(const Diagnostic& diagnostic, std::string_view source, std::string_view file,
                   bool with_tag);

}  // namespace ringside::d
