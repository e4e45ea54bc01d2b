// One error in a D program: dtrace's tag, the text, and the place. Every phase of the compiler
// returns it; the command makes a message of it (cli/program/sources.h). Does not: print.
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
  bool is_parsers = false;  // the grammar's own: a token that fits nowhere, or the end
  // compile() adds these:
  std::string library;      // the name of the library that it is about; empty: the program
  std::string source_line;  // number at.source_line, without its newline
};

/// The result of a compiler phase.
template <class T>
using Checked = Result<T, Diagnostic>;

inline tl::unexpected<Diagnostic> complain(std::string_view tag, const Location& at,
                                           std::string text) {
  return tl::unexpected<Diagnostic>(Diagnostic{tag, std::move(text), at, false, {}, {}});
}

/// The line with this number, from 1; empty where the text has none.
std::string_view line_of(std::string_view text, int number);

// In messages, bytes that a terminal would obey are shown as \xNN.

/// A newline, the source line, and below it a caret with the column. A long line is cut to the part
/// around the column.
std::string excerpt(const Diagnostic& diagnostic);

/// The whole message: "line N: text" and the excerpt, in front [D_TAG] if asked for and `"file", `
/// for a library.
std::string render(const Diagnostic& diagnostic, bool with_tag);

}  // namespace ringside::d
