// The D programs of one command line as one text for the compiler: globals and aggregations are
// shared by name between -n, -s and the rest, as they are in one dtrace. Remembers which line
// belongs to which program and file (it takes cpp's line markers away), so that messages speak of
// the user's own text.
// Does not: parse D beyond finding where a description ends and what a comment is.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options/options.h"
#include "cli/options/settings.h"
#include "dif/d/syntax/diagnostic.h"
#include "vmm/base/result.h"

namespace ringside::cli {

class Sources {
 public:
  /// Reads the scripts and puts everything into -n's form. `tags`: as -x errtags wants errors.
  static Result<Sources> load(const std::vector<ProgramSource>& programs,
                              const PreprocessorSettings& preprocessor = {}, bool tags = false);

  const std::string& text() const { return text_; }
  std::size_t program_count() const { return programs_.size(); }
  /// Which program a line of text() belongs to; lines count from 1.
  std::size_t program_of(int line) const;
  /// "description 'BEGIN'" or "script 'f.d'".
  std::string label(std::size_t program) const;
  /// The same without quotes, as the stability report has it.
  std::string report_label(std::size_t program) const;
  /// "f.d:13" for a line of text(), counted in its own file; empty where that is no file.
  std::string place(int line) const;
  /// The message for what the compiler says of text(): what is wrong, then where, and the line:
  /// "REASON (f.d:13)"; in a description of the command line the part: "(in action list of
  /// 'BEGIN')". `tags`, as -x errtags wants it: in dtrace's order, with the error's tag: "failed to
  /// compile script f.d: [TAG] line 13: REASON"; in a file that is included, "\"file\", line N".
  std::string explain(const d::Diagnostic& diagnostic, bool tags) const;

 private:
  struct Program {
    std::string kind, name;  // "description" or "script", "BEGIN"
    std::string complaint;   // "failed to compile script f.d", "invalid probe specifier ..."
    std::string file;        // what line markers call the program itself
    int first_line = 1;
  };
  /// Where a stretch of text() comes from.
  struct Stretch {
    int first_line = 1;  // of text()
    std::size_t program = 0;
    std::string file;  // empty: the program's own text
    int line = 1;      // of first_line, in that file
  };
  void add(Program program, std::string_view text);
  struct FileLine {
    std::string file;  // empty: the program's own text
    int line = 1;
  };
  FileLine file_line(int source_line, int line) const;
  std::string short_place(const d::Diagnostic& diagnostic) const;
  std::string dtrace_place(const d::Diagnostic& diagnostic) const;
  std::string_view region(const d::Diagnostic& diagnostic) const;

  std::vector<Program> programs_;
  std::vector<Stretch> stretches_;
  std::string text_;
};

/// D text with comments blanked out and strings kept; lines stay where they are.
std::string without_comments(std::string_view text);

}  // namespace ringside::cli
