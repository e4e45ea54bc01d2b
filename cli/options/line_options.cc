// In this file, top to bottom: the functions that the rows of options.def name for letters and long
// options, and the table of these rows.
#include "cli/options/line_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/options/machine_list.h"
#include "cli/options/option_values.h"

namespace ringside::cli {
namespace {

// Programs and tasks.

template <ProgramSource::Kind kKind>
Result<void> program(CommandLine& line, const std::string& argument) {
  line.programs.push_back({kKind, argument});
  return {};
}

Result<void> add_command(CommandLine& line, const std::string& argument) {
  line.commands.push_back(argument);
  return {};
}

Result<void> add_process(CommandLine& line, const std::string& argument) {
  // A blank before it comes from scripts that pass "-p 123" as one word.
  const std::size_t number = std::min(argument.find_first_not_of(' '), argument.size());
  const auto pid = parse_number(argument.substr(number));
  if (!pid || *pid < 1 || *pid > INT32_MAX) {
    return fail(ErrorCode::Invalid, fmt::format("invalid pid: {}", argument));
  }
  line.processes.push_back(static_cast<std::int64_t>(*pid));
  return {};
}

/// One of the tasks that exclude each other.
Result<void> set_task(CommandLine& line, CommandLine::Task task) {
  using Task = CommandLine::Task;
  const bool other = line.task != Task::Trace && line.task != Task::CompileOnly;
  if (other && line.task != task) {
    return fail(ErrorCode::Usage, "only one of the [-AGhlV] options can be specified at a time");
  }
  line.task = task;
  return {};
}

template <CommandLine::Task kTask>
Result<void> task(CommandLine& line, const std::string&) {
  return set_task(line, kTask);
}

/// Whatever else was asked for.
template <CommandLine::Task kTask>
Result<void> set_task_anyhow(CommandLine& line, const std::string&) {
  line.task = kTask;
  return {};
}

Result<void> compile_only(CommandLine& line, const std::string&) {
  using Task = CommandLine::Task;
  if (line.task == Task::Trace) line.task = Task::CompileOnly;
  return {};
}

template <char kLetter>
Result<void> refuse_anonymous(CommandLine&, const std::string&) {
  return fail(ErrorCode::Unsupported,
              fmt::format("-{}: there is no anonymous tracing here; to trace a boot, start the "
                          "guest with --machine kvm",
                          kLetter));
}

// How.

Result<void> show_desugared(CommandLine& line, const std::string&) {
  line.settings.show_desugared = true;
  return {};
}

Result<void> set_verbose(CommandLine& line, const std::string&) {
  line.verbose = true;
  return {};
}

Result<void> set_output_file(CommandLine& line, const std::string& argument) {
  line.output_file = argument;
  return {};
}

Result<void> print_all_aggregations(CommandLine& line, const std::string&) {
  line.settings.print_all_aggregations = true;
  return {};
}

Result<void> set_x_option(CommandLine& line, const std::string& argument) {
  return apply_option_argument(line.settings, argument);
}

/// A letter that stands for one of dtrace's options, in that option's words.
Result<void> set_by_letter(CommandLine& line, char letter, std::string_view name,
                           const std::string& value) {
  auto done = apply_option(line.settings, name, value, OptionSource::CommandLine);
  if (done) return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("failed to set -{} {}: {}", letter, value, done.error().message));
}

/// How output is handed over (-B): the same is printed.
Result<void> change_nothing(CommandLine&, const std::string&) {
  return {};
}

/// -32 and -64: there is the 64-bit data model only, and no objects are made.
template <char kLetter>
Result<void> word_size(CommandLine&, const std::string& argument) {
  if (argument == (kLetter == '6' ? "4" : "2")) return {};
  return fail(ErrorCode::Usage,
              fmt::format("illegal option -- {}{}; --help lists the options", kLetter, argument));
}

// Machines.

Result<void> add_image(CommandLine& line, const std::string& argument) {
  line.machines.emplace_back().image = argument;
  return {};
}

Result<void> add_kernel(CommandLine& line, const std::string& argument) {
  line.machines.emplace_back().guest.kernel = argument;
  return {};
}

Result<void> add_attached(CommandLine& line, const std::string& argument) {
  line.machines.emplace_back().attach = {argument, {}};
  return {};
}

Result<void> set_initrd(CommandLine& line, const std::string& argument) {
  line.common.guest.initrd = argument;
  return {};
}

Result<void> set_append(CommandLine& line, const std::string& argument) {
  line.common.guest.append = argument;
  return {};
}

Result<void> set_all_cpus(CommandLine& line, const std::string& argument) {
  return set_cpus(line.common.guest, argument);
}

Result<void> set_all_memory(CommandLine& line, const std::string& argument) {
  return set_memory(line.common.guest, argument);
}

Result<void> set_keep(CommandLine& line, const std::string&) {
  line.common.qemu.keep = true;
  return {};
}

Result<void> set_as_is(CommandLine& line, const std::string&) {
  line.common.qemu.as_is = true;
  return {};
}

Result<void> set_qemu(CommandLine& line, const std::string& argument) {
  line.common.qemu.program = argument;
  return {};
}

Result<void> set_console(CommandLine& line, const std::string&) {
  line.common.kvm.terminal = true;
  return {};
}

Result<void> set_after_boot(CommandLine& line, const std::string&) {
  line.common.after_boot = true;
  return {};
}

Result<void> set_kvm_device(CommandLine& line, const std::string& argument) {
  line.common.kvm.device = argument;
  return {};
}

Result<void> set_machine(CommandLine& line, const std::string& choice) {
  if (choice == "auto") {
    line.common.choice = MachineChoice::Auto;
  } else if (choice == "kvm") {
    line.common.choice = MachineChoice::Kvm;
  } else if (choice == "qemu-kvm") {
    line.common.choice = MachineChoice::QemuKvm;
  } else if (choice == "qemu") {
    line.common.choice = MachineChoice::Qemu;
  } else {
    return fail(ErrorCode::Usage,
                fmt::format("--machine {}: it is one of auto, kvm, qemu and qemu-kvm", choice));
  }
  return {};
}

Result<void> set_boot(CommandLine& line, const std::string& way) {
  if (way == "auto") {
    line.common.kvm.boot = vmm::BootPreference::Auto;
  } else if (way == "pvh") {
    line.common.kvm.boot = vmm::BootPreference::Pvh;
  } else if (way == "bzimage") {
    line.common.kvm.boot = vmm::BootPreference::BzImage;
  } else {
    return fail(ErrorCode::Usage,
                fmt::format("--boot {}: it is one of auto, pvh and bzimage", way));
  }
  return {};
}

/// FILE or FILE,ro.
Result<void> add_disk(CommandLine& line, const std::string& text) {
  std::string_view argument = text;
  constexpr std::string_view kReadOnly = ",ro";
  vmm::DiskConfig disk;
  disk.read_only = argument.ends_with(kReadOnly);
  if (disk.read_only) argument.remove_suffix(kReadOnly.size());
  if (argument.empty()) return fail(ErrorCode::Usage, "--disk: name a file, or FILE,ro");
  disk.path = argument;
  line.common.kvm.disks.push_back(std::move(disk));
  return {};
}

/// FreeBSD's: a list of libxo's words, of which those that name a format can be had here.
Result<void> set_libxo(CommandLine& line, const std::string& text) {
  std::string_view words = text;
  while (!words.empty()) {
    const std::size_t comma = std::min(words.find_first_of(",:"), words.size());
    const std::string_view word = words.substr(0, comma);
    words.remove_prefix(std::min(comma + 1, words.size()));
    if (word == "pretty" || word == "no-pretty") continue;  // it is JSON, XML or HTML either way
    const auto format = parse_output_format(word);
    if (!format) {
      return fail(ErrorCode::Usage,
                  fmt::format("--libxo {}: it is one of {}", word, kOutputFormats));
    }
    line.settings.format = *format;
  }
  return {};
}

/// "8080" or "10.0.0.1:8080"; an address of IPv6 has brackets.
Result<void> set_listen(CommandLine& line, const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string port_text = colon == std::string::npos ? text : text.substr(colon + 1);
  const auto port = parse_number(port_text);
  std::string address = colon == std::string::npos ? line.web.address : text.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']'))
    address = address.substr(1, address.size() - 2);
  if (!port || *port > UINT16_MAX || address.empty()) {
    return fail(ErrorCode::Usage,
                fmt::format("--listen {}: it takes PORT, ADDRESS:PORT or [ADDRESS]:PORT", text));
  }
  line.web = {std::move(address), static_cast<std::uint16_t>(*port), true};
  return {};
}

Result<void> set_before(CommandLine& line, const std::string& path) {
  if (path.empty()) return fail(ErrorCode::Usage, "--before: name the file");
  line.before_file = path;
  return {};
}

Result<void> set_core(CommandLine& line, const std::string& path) {
  if (path.empty()) return fail(ErrorCode::Usage, "--core: name the file");
  if (!line.core_file.empty()) return fail(ErrorCode::Usage, "--core: one at a time");
  line.core_file = path;
  return {};
}

Result<void> set_types(CommandLine& line, const std::string& path) {
  if (path.empty()) return fail(ErrorCode::Usage, "--types: name the file");
  if (!line.types_file.empty()) return fail(ErrorCode::Usage, "--types: one file");
  line.types_file = path;
  return {};
}

Result<void> add_sysroot(CommandLine& line, const std::string& path) {
  if (path.empty()) return fail(ErrorCode::Usage, "--sysroot: name the folder");
  line.settings.sysroots.push_back(path);
  return {};
}

/// In --help, what stands in one pair of brackets may be left out.
constexpr bool needs_value(std::string_view value) {
  if (value.empty() || value.front() != '[') return !value.empty();
  return value.find(']') + 1 != value.size();
}

// An option of -x without a letter is no option of the line: its row is never found.
constexpr LineOption kLineOptions[] = {
#define LINE_OPTION(letter, word, value, group, again, set, help, manual) \
  {letter, word, needs_value(value), set},
#define X_OPTION(name, letter, value, group, again, when, set, help, manual)        \
  {letter, "", needs_value(value), [](CommandLine& line, const std::string& text) { \
     return set_by_letter(line, letter, name, text);                                \
   }},
#include "cli/options/options.def"
};

}  // namespace

std::span<const LineOption> line_options() {
  return kLineOptions;
}

}  // namespace ringside::cli
