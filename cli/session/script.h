// Makes one compiled program for all machines from the D programs of a command line: from their
// text, or from a file that they were saved to.
// Does not: know targets; bind_script.h binds the program to them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "cli/output/sink.h"
#include "cli/program/machines_environment.h"
#include "cli/program/sources.h"
#include "cli/session/session_target.h"
#include "dif/d/compile.h"
#include "dif/d/syntax/diagnostic.h"
#include "dif/program/program.h"
#include "vmm/base/result.h"

namespace ringside::cli {

class Script {
 public:
  /// Options that the programs set are set in the line's settings. The line must outlive this.
  explicit Script(CommandLine& line) : line_(line) {}

  /// Reads the programs' files, or the saved program: no machine need be started to learn that one
  /// is missing.
  Result<void> read();
  /// Compiles, or takes the saved program as it is; does nothing where the command line has
  /// neither. The text of -x desugar goes to `output`. After read().
  Result<void> make(const SessionTargets& targets, MachinesEnvironment& environment, Sink& output);

  /// The compiler's finding, where make() has failed with ErrorCode::Compile.
  const std::optional<d::Diagnostic>& diagnostic() const { return diagnostic_; }

  /// The program, null where there is none.
  const dif::Program* program() const { return program_ ? &*program_ : nullptr; }
  /// Writes into the program what it needs of the kernel that it was compiled against.
  Result<void> record_kernel_of(const providers::Target& target);
  /// -x threads: each record of the program will have its thread.
  void tell_threads();
  /// Targets are bound: it is not needed any more.
  void release_program() { program_.reset(); }

  /// How many programs it was put together from; 1 for a saved one.
  std::size_t count() const;
  /// Which of them a clause is of.
  std::size_t program_of(const dif::Clause& clause) const;
  /// "description 'BEGIN'", "script 'f.d'" or "program 'f.dof'".
  std::string label(std::size_t program) const;
  /// "f.d:13", for a line of the program's text; empty where it is of the command line, or of a
  /// saved program.
  std::string place(int line) const { return is_saved() ? std::string() : sources_.place(line); }
  /// The whole of it in an error: "the program", or the file that it was saved to.
  std::string name() const { return is_saved() ? line_.dof_file : "the program"; }
  /// Whether a provider's name has $target in it: pid$target.
  bool probes_target() const { return sources_.text().find("$target:") != std::string::npos; }
  /// Whether it was compiled before, perhaps against another kernel.
  bool is_saved() const { return !line_.dof_file.empty(); }
  /// The stability of each program for -v, of all its clauses together. `program` is this one,
  /// perhaps bound.
  std::string stability(const dif::Program& program) const;

 private:
  Result<void> compile(const SessionTargets& targets, MachinesEnvironment& environment,
                       Sink& output);
  Result<d::Compiled> compile_with(const std::vector<d::LibrarySource>& libraries,
                                   const SessionTargets& targets, MachinesEnvironment& environment);
  Result<void> write_types(const TypeGraph& types, TypeId first) const;
  Result<void> take_over_saved(const MachinesEnvironment& environment);

  CommandLine& line_;
  Sources sources_;
  std::optional<dif::Program> program_;
  std::optional<d::Diagnostic> diagnostic_;
};

/// The compiler's options, made from the command line.
/// `targets` is $target on each machine, 0 for none; `name` is what the compiler's messages call
/// the programs. Options that a program sets (`#pragma D option`) are set in `line`, which must
/// stay until the program is compiled.
d::CompileOptions compile_options(CommandLine& line, std::string name,
                                  const std::vector<std::int64_t>& targets,
                                  std::vector<d::LibrarySource> libraries);

}  // namespace ringside::cli
