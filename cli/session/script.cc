#include "cli/session/script.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "cli/messages/messages.h"
#include "cli/output/type_dictionary.h"
#include "cli/program/bind_program.h"
#include "cli/program/libraries.h"
#include "cli/program/probe_list.h"
#include "cli/program/saved_program.h"
#include "cli/session/session_target.h"
#include "dif/d/types/system_types.h"
#include "dif/program/builtin.h"
#include "dif/program/insn.h"
#include "dif/verify/predicate_checks.h"

namespace ringside::cli {

namespace {

/// Takes the compiler's part of the settings, again after each that a program sets.
void take_settings(d::CompileOptions& options, const CommandLine& line) {
  const Settings& settings = line.settings;
  options.default_arguments = settings.default_arguments;
  options.unused_arguments = settings.unused_arguments;
  options.allow_zero_matches = settings.zero_matches || line.task == CommandLine::Task::List;
  options.allow_empty = settings.empty;
  options.destructive = settings.destructive;
  options.string_size = settings.engine.string_size;
  options.attribute_minimum = settings.attribute_minimum;
  options.integer_registers = settings.integer_registers;
  options.tuple_registers = settings.tuple_registers;
  options.stack_frames = std::min(settings.stack_frames, settings.most_frames);
  options.user_stack_frames = std::min(settings.user_stack_frames, settings.most_frames);
  options.java_stack_frames = std::min(settings.java_stack_frames, settings.most_frames);
  options.version = settings.version;
  options.list_desugared = settings.show_desugared;
}

}  // namespace

d::CompileOptions compile_options(CommandLine& line, std::string name,
                                  const std::vector<std::int64_t>& targets,
                                  std::vector<d::LibrarySource> libraries) {
  d::CompileOptions options;
  std::string script = program_path();
  for (const ProgramSource& source : line.programs) {
    if (source.kind == ProgramSource::Kind::Script) script = source.text;
  }
  options.source_name = std::move(name);
  options.is_file = std::ranges::all_of(line.programs, [](const ProgramSource& source) {
    return source.kind == ProgramSource::Kind::Script || source.kind == ProgramSource::Kind::Text;
  });
  options.macro_arguments.push_back(script);
  options.macro_arguments.insert(options.macro_arguments.end(), line.arguments.begin(),
                                 line.arguments.end());
  options.macros = {{"pid", getpid()},
                    {"ppid", getppid()},
                    {"uid", getuid()},
                    {"euid", geteuid()},
                    {"gid", getgid()},
                    {"egid", getegid()},
                    {"pgid", getpgrp()},
                    {"sid", getsid(0)},
                    // Linux has neither projects nor tasks; illumos's system project and task.
                    {"projid", 0},
                    {"taskid", 0}};
  if (!targets.empty() && targets.front() != 0) options.macros["target"] = targets.front();
  options.target_differs =
      std::ranges::adjacent_find(targets, std::not_equal_to()) != targets.end();
  options.libraries = std::move(libraries);
  take_settings(options, line);
  options.set_option = [&line](std::string_view name, std::string_view value,
                               d::CompileOptions& set) -> Result<void> {
    TRY(apply_option(line.settings, name, value, OptionSource::Program));
    take_settings(set, line);
    return {};
  };
  return options;
}

namespace {

/// Whether types of the kernel may mend it: a name of a type or member, an argument with a type, a
/// probe that is made by types.
bool is_about_types(const d::Diagnostic& error) {
  constexpr std::string_view kTags[] = {
      "D_ARGS_IDX",   "D_ARGS_NONE",     "D_ARGS_TYPE",     "D_ARGS_XLATOR", "D_DECL_INCOMPLETE",
      "D_FUNC_UNDEF", "D_IDENT_UNDEF",   "D_OP_INCOMPLETE", "D_OP_PTR",      "D_OP_SOU",
      "D_PDESC_ZERO", "D_PRAGMA_DEPEND", "D_SYM_NOTYPES",   "D_TYPE_ERR",    "D_TYPE_MEMBER",
      "D_UNKNOWN",    "D_VAR_UNDEF",     "D_XLATE_NONE",    "D_XLATE_SOU"};
  // The parser's own finding of D_SYNTAX is a type that it does not know.
  if (error.tag == "D_SYNTAX") return !error.is_parsers;
  return std::ranges::find(kTags, error.tag) != std::end(kTags);
}

}  // namespace

Result<void> Script::read() {
  sources_ =
      TRY(Sources::load(line_.programs, line_.settings.preprocessor, line_.settings.error_tags));
  if (is_saved()) program_ = TRY(load_program(line_.dof_file));
  return {};
}

Result<void> Script::make(const SessionTargets& targets, MachinesEnvironment& environment,
                          Sink& output) {
  if (!line_.programs.empty()) TRY(compile(targets, environment, output));
  if (is_saved()) TRY(take_over_saved(environment));
  return {};
}

Result<void> Script::compile(const SessionTargets& targets, MachinesEnvironment& environment,
                             Sink& output) {
  const std::string own_folder = data_folder("lib");
  const std::string missing =
      missing_libraries(line_.settings, own_folder, data_folder_places("lib"));
  if (!missing.empty()) say(missing);
  const auto libraries = TRY(load_libraries(line_.settings, own_folder, LibraryReader::Program));
  TypeGraph& types = environment.types();
  d::add_system_types(types);
  const TypeId first_of_program = types.next_id();
  auto compiled = TRY(compile_with(libraries, targets, environment));
  if (line_.settings.show_desugared) {
    output.write(compiled.desugared);
    output.flush();
  }
  program_ = std::move(compiled.program);
  if (targets.several()) TRY(record_kernel_of(*targets.front().target));
  return write_types(types, first_of_program);
}

/// Once, with the first machine's kernel: what it contains of a kernel it contains by name.
Result<d::Compiled> Script::compile_with(const std::vector<d::LibrarySource>& libraries,
                                         const SessionTargets& targets,
                                         MachinesEnvironment& environment) {
  std::vector<std::int64_t> processes;
  for (const SessionTarget& entry : targets) processes.push_back(entry.process);
  const d::CompileOptions options = compile_options(line_, sources_.label(0), processes, libraries);
  const Clock::time_point began = Clock::now();
  auto compiled = d::compile(sources_.text(), options, environment);
  if (!compiled) {
    d::Diagnostic& error = compiled.error();
    if (is_about_types(error)) error.text += targets.way_to_types();
    std::string text = sources_.explain(error, line_.settings.error_tags);
    diagnostic_ = std::move(error);
    return fail(ErrorCode::Compile, std::move(text));
  }
  report_time(line_.settings, "compiled", began);
  return std::move(*compiled);
}

/// -x ctypes and -x dtypes: the types from number `first` on.
Result<void> Script::write_types(const TypeGraph& types, TypeId first) const {
  const Settings& settings = line_.settings;
  if (!settings.c_dictionary.empty()) {
    TRY(write_dictionary(settings.c_dictionary, c_dictionary(types, first)));
  }
  if (!settings.d_dictionary.empty()) {
    TRY(write_dictionary(settings.d_dictionary,
                         d_dictionary(types, first, settings.engine.string_size)));
  }
  return {};
}

/// A program that was compiled before: its options, then as if it had been compiled now.
Result<void> Script::take_over_saved(const MachinesEnvironment& environment) {
  for (const auto& [name, value] : program_->options) {
    auto done = apply_option(line_.settings, name, value, OptionSource::SavedProgram);
    if (!done) {
      return fail(done.error().code, fmt::format("{}: failed to set option '{}': {}",
                                                 line_.dof_file, name, done.error().message));
    }
  }
  if (line_.settings.zero_matches || line_.task == CommandLine::Task::List) return {};
  for (const dif::Clause& clause : program_->clauses) {
    for (const dif::ProbeDescription& probe : clause.probes) {
      const std::string why = environment.why_no_machine(probe);
      if (why.empty()) continue;
      return fail(ErrorCode::NotFound,
                  fmt::format("could not enable tracing: {} does not match any probes: {}",
                              probe.to_string(), why));
    }
  }
  return {};
}

/// As the last action, so that messages about faults count the others as the program has them.
void Script::tell_threads() {
  using dif::ValueKind;
  const auto value_of = [](dif::Builtin variable, dif::ValueType type) {
    dif::Difo difo;
    difo.text = {dif::encode_indexed(dif::Opcode::Ldgs, static_cast<unsigned>(variable), 1),
                 dif::encode_return(1)};
    difo.strings = std::string(1, '\0');
    difo.result = type;
    return difo;
  };
  dif::Action thread;
  thread.kind = dif::ActionKind::TellThread;
  thread.arguments = {
      value_of(dif::Builtin::Pid, {ValueKind::Integer, true, 4}),
      value_of(dif::Builtin::Tid, {ValueKind::Integer, true, 4}),
      value_of(dif::Builtin::Execname, {ValueKind::String, false, dif::kTaskNameBytes})};
  for (dif::Clause& clause : program_->clauses) {
    if (dif::makes_records(clause)) clause.actions.push_back(thread);
  }
}

Result<void> Script::record_kernel_of(const providers::Target& target) {
  return record_kernel(*program_, target);
}

std::size_t Script::count() const {
  return std::max<std::size_t>(sources_.program_count(), 1);
}

std::size_t Script::program_of(const dif::Clause& clause) const {
  return sources_.program_of(clause.line);
}

std::string Script::label(std::size_t program) const {
  return is_saved() ? fmt::format("program '{}'", line_.dof_file) : sources_.label(program);
}

std::string Script::stability(const dif::Program& program) const {
  struct Least {
    dif::Attributes description, statements;
  };
  constexpr dif::Attributes kMost{dif::Stability::Standard, dif::Stability::Standard,
                                  dif::DependencyClass::Common};
  std::vector<std::optional<Least>> all(count());
  for (const dif::Clause& clause : program.clauses) {
    auto& least = all[program_of(clause)];
    if (!least) least = Least{kMost, kMost};
    least->description = dif::least(least->description, clause.description_attributes);
    least->statements = dif::least(least->statements, clause.statement_attributes);
  }
  std::string report;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i]) continue;
    const std::string label = is_saved() ? "program " + line_.dof_file : sources_.report_label(i);
    report += stability_report(label, all[i]->description, all[i]->statements);
  }
  return report;
}

}  // namespace ringside::cli
