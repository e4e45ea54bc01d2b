#include "cli/options/compile_options.h"

#include <unistd.h>

#include <algorithm>

#include "cli/messages.h"

namespace ringside::cli {

d::CompileOptions compile_options(const CommandLine& line, std::string name, std::int64_t target,
                                  std::vector<d::LibrarySource> libraries) {
  d::CompileOptions options;
  const Settings& settings = line.settings;
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
  if (target != 0) options.macros["target"] = target;
  options.default_arguments = settings.default_arguments;
  options.unused_arguments = settings.unused_arguments;
  options.error_tags = settings.error_tags;
  options.allow_zero_matches = settings.zero_matches || line.task == CommandLine::Task::List;
  options.allow_empty = settings.empty;
  options.destructive = settings.destructive;
  options.string_size = settings.engine.string_size;
  options.libraries = std::move(libraries);
  options.attribute_minimum = settings.attribute_minimum;
  options.integer_registers = settings.integer_registers;
  options.tuple_registers = settings.tuple_registers;
  options.stack_frames = std::min(settings.stack_frames, settings.most_frames);
  options.user_stack_frames = std::min(settings.user_stack_frames, settings.most_frames);
  options.java_stack_frames = std::min(settings.java_stack_frames, settings.most_frames);
  options.version = settings.version;
  options.check_option = [settings](std::string_view name, std::string_view value) {
    Settings trial = settings;
    const auto done = apply_option(trial, name, value, SettingPhase::Program);
    return done ? std::string() : done.error().message;
  };
  return options;
}

}  // namespace ringside::cli
