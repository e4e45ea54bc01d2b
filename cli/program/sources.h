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
#include "dif/d/diagnostic.h"
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
  /// The message for what the compiler says of text(): dtrace's words in front, the line counted in
  /// the program that it is about; in a file that it includes, "\"file\", line N"; in a description
  /// of the command line, the part: "in action list". `tags`: with the error's tag, as -x errtags
  /// wants it.
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
  std::string place(const d::Location& at) const;
  std::string where(const d::Diagnostic& diagnostic) const;
  static std::string_view region(std::string_view before);

  std::vector<Program> programs_;
  std::vector<Stretch> stretches_;
  std::string text_;
};

/// D text with comments blanked out and strings kept; lines stay where they are.
std::string without_comments(std::string_view text);

}  // namespace ringside::cli
