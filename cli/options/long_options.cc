#include "cli/options/long_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/options/machine_list.h"
#include "cli/options/quantities.h"

namespace ringside::cli {
namespace {

Result<void> set_machine(MachineOptions& machine, std::string_view choice) {
  if (choice == "auto") {
    machine.choice = MachineChoice::Auto;
  } else if (choice == "kvm") {
    machine.choice = MachineChoice::Kvm;
  } else if (choice == "qemu-kvm") {
    machine.choice = MachineChoice::QemuKvm;
  } else if (choice == "qemu") {
    machine.choice = MachineChoice::Qemu;
  } else {
    return fail(ErrorCode::Usage,
                fmt::format("--machine {}: it is one of auto, kvm, qemu and qemu-kvm", choice));
  }
  return {};
}

Result<void> set_boot(vmm::KvmConfig& config, std::string_view way) {
  if (way == "auto") {
    config.boot = vmm::BootPreference::Auto;
  } else if (way == "pvh") {
    config.boot = vmm::BootPreference::Pvh;
  } else if (way == "bzimage") {
    config.boot = vmm::BootPreference::BzImage;
  } else {
    return fail(ErrorCode::Usage,
                fmt::format("--boot {}: it is one of auto, pvh and bzimage", way));
  }
  return {};
}

/// FILE or FILE,ro.
Result<void> add_disk(vmm::KvmConfig& config, std::string_view argument) {
  constexpr std::string_view kReadOnly = ",ro";
  vmm::DiskConfig disk;
  disk.read_only = argument.ends_with(kReadOnly);
  if (disk.read_only) argument.remove_suffix(kReadOnly.size());
  if (argument.empty()) return fail(ErrorCode::Usage, "--disk: name a file, or FILE,ro");
  disk.path = argument;
  config.disks.push_back(std::move(disk));
  return {};
}

/// FreeBSD's: a list of libxo's words, of which those that name a format can be had here.
Result<void> set_libxo(Settings& settings, std::string_view words) {
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
    settings.format = *format;
  }
  return {};
}

Result<void> set_core(CommandLine& line, const std::string& path) {
  if (path.empty()) return fail(ErrorCode::Usage, "--core: name the file");
  if (!line.core_file.empty()) return fail(ErrorCode::Usage, "--core: one at a time");
  line.core_file = path;
  return {};
}

constexpr LongOption kLongOptions[] = {
    {"image", true,
     [](CommandLine& line, const std::string& argument) -> Result<void> {
       line.machines.emplace_back().image = argument;
       return {};
     }},
    {"kernel", true,
     [](CommandLine& line, const std::string& argument) -> Result<void> {
       line.machines.emplace_back().guest.kernel = argument;
       return {};
     }},
    {"attach", true,
     [](CommandLine& line, const std::string& argument) -> Result<void> {
       line.machines.emplace_back().attach = {argument, {}};
       return {};
     }},
    {"initrd", true,
     [](CommandLine& line, const std::string& argument) -> Result<void> {
       line.common.guest.initrd = argument;
       return {};
     }},
    {"append", true,
     [](CommandLine& line, const std::string& argument) -> Result<void> {
       line.common.guest.append = argument;
       return {};
     }},
    {"cpus", true,
     [](CommandLine& line, const std::string& argument) -> Result<void> {
       return set_cpus(line.common.guest, argument);
     }},
    {"memory", true,
     [](CommandLine& line, const std::string& argument) -> Result<void> {
       return set_memory(line.common.guest, argument);
     }},
    {"machine", true,
     [](CommandLine& line, const std::string& argument) -> Result<void> {
       return set_machine(line.common, argument);
     }},
    {"keep", false,
     [](CommandLine& line, const std::string&) -> Result<void> {
       line.common.qemu.keep = true;
       return {};
     }},
    {"as-is", false,
     [](CommandLine& line, const std::string&) -> Result<void> {
       line.common.qemu.as_is = true;
       return {};
     }},
    {"qemu", true,
     [](CommandLine& line, const std::string& argument) -> Result<void> {
       line.common.qemu.program = argument;
       return {};
     }},
    {"disk", true,
     [](CommandLine& line, const std::string& argument) -> Result<void> {
       return add_disk(line.common.kvm, argument);
     }},
    {"console", false,
     [](CommandLine& line, const std::string&) -> Result<void> {
       line.common.kvm.terminal = true;
       return {};
     }},
    {"boot", true,
     [](CommandLine& line, const std::string& argument) -> Result<void> {
       return set_boot(line.common.kvm, argument);
     }},
    {"after-boot", false,
     [](CommandLine& line, const std::string&) -> Result<void> {
       line.common.after_boot = true;
       return {};
     }},
    {"kvm-device", true,
     [](CommandLine& line, const std::string& argument) -> Result<void> {
       line.common.kvm.device = argument;
       return {};
     }},
    {"core", true,
     [](CommandLine& line, const std::string& argument) -> Result<void> {
       return set_core(line, argument);
     }},
    {"types", true,
     [](CommandLine& line, const std::string& argument) -> Result<void> {
       if (argument.empty()) return fail(ErrorCode::Usage, "--types: name the file");
       if (!line.types_file.empty()) return fail(ErrorCode::Usage, "--types: one file");
       line.types_file = argument;
       return {};
     }},
    {"libxo", true,
     [](CommandLine& line, const std::string& argument) -> Result<void> {
       return set_libxo(line.settings, argument);
     }},
    {"help", false,
     [](CommandLine& line, const std::string&) -> Result<void> {
       line.task = CommandLine::Task::Help;
       return {};
     }},
    {"version", false,
     [](CommandLine& line, const std::string&) -> Result<void> {
       line.task = CommandLine::Task::ProgramVersion;
       return {};
     }},
};

}  // namespace

std::span<const LongOption> long_options() {
  return kLongOptions;
}

}  // namespace ringside::cli
