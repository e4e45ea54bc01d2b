#include "cli/options/compile_options.h"

#include <unistd.h>

#include <algorithm>
#include <functional>

#include "cli/messages.h"

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
    return source.kind == ProgramSource::Kind::Script;
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

}  // namespace ringside::cli
