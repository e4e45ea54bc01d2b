// The D programs of one command line as one text for the compiler: globals and aggregations are
// shared by name between -n, -s and the rest, as they are in one dtrace. Remembers which line
// belongs to which program, so that messages speak of the user's own text.
// Does not: parse D beyond finding where a description ends and what a comment is.
// Fire context: no.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options.h"
#include "cli/settings.h"
#include "dif/probe_description.h"
#include "vmm/base/result.h"

namespace ringside::cli {

class Sources {
 public:
  /// The full name of the probe with an id (-i); empty when there is none.
  using ProbeLookup = std::function<std::optional<dif::ProbeDescription>(dif::ProbeId)>;

  /// Reads the scripts and puts everything into -n's form.
  static Result<Sources> load(const std::vector<ProgramSource>& programs,
                              const ProbeLookup& probe_by_id);

  const std::string& text() const { return text_; }
  std::size_t program_count() const { return programs_.size(); }
  /// Which program a line of text() belongs to; lines count from 1.
  std::size_t program_of(int line) const;
  /// "description 'BEGIN'" or "script 'f.d'".
  const std::string& label(std::size_t program) const { return programs_[program].label; }
  /// A compiler's message ("line N: ...", a tag before it or not) with dtrace's words in front and
  /// the line counted in the program that it is about.
  std::string explain(std::string_view message) const;

  /// Applies the compile-time options among `#pragma D option`, which the compiler must know
  /// before it reads them. Bad ones are left for the compiler's own answer.
  void apply_early_options(Settings& settings) const;

 private:
  struct Program {
    std::string label;
    std::string complaint;  // "failed to compile script f.d", "invalid probe specifier ..."
    int first_line = 1;
  };
  void add(Program program, std::string_view text);

  std::vector<Program> programs_;
  std::string text_;
};

/// D text with comments blanked out and strings kept; lines stay where they are.
std::string without_comments(std::string_view text);

}  // namespace ringside::cli
