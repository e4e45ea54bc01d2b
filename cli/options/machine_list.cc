// In this file, top to bottom: suboptions, names, rules.
#include "cli/options/machine_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "cli/options/option_values.h"

namespace ringside::cli {
namespace {

constexpr unsigned kMaxCpus = 64;

/// Whether a description's machine field can hold `c`, and `c` is no pattern's.
bool is_name_character(char c) {
  const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return is_word || std::string_view("_-.+@%").find(c) != std::string_view::npos;
}

/// Words between single commas, as QEMU parts its suboptions.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool comma = text[i] == ',';
    const bool twice = comma && i + 1 < text.size() && text[i + 1] == ',';
    if (comma && !twice) {
      words.emplace_back();
      continue;
    }
    words.back() += text[i];
    if (twice) ++i;
  }
  return words;
}

Result<void> set_name(MachineOptions& machine, const std::string& name) {
  if (!std::ranges::all_of(name, is_name_character)) {
    return fail(ErrorCode::Usage,
                fmt::format("name={}: a machine's name, which stands in probe descriptions, is of "
                            "letters, digits and _ - . + @ %",
                            name));
  }
  machine.name = name;
  return {};
}

Result<void> set_own(MachineOptions& machine, std::string_view option, const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string_view name = std::string_view(word).substr(0, equals);
  const std::string value = equals == word.npos ? std::string() : word.substr(equals + 1);
  if (!value.empty()) {
    if (name == "cpus") return set_cpus(machine.guest, value);
    if (name == "memory") return set_memory(machine.guest, value);
    if (name == "name") return set_name(machine, value);
    if (name == "append") return machine.guest.append = value, Result<void>();
    if (name == "initrd") return machine.guest.initrd = value, Result<void>();
  }
  return fail(ErrorCode::Usage,
              fmt::format("{} {}: after the first comma stand name=NAME, cpus=N, memory=SIZE, "
                          "initrd=FILE or append=STRING",
                          option, word));
}

/// TARGET[,name=NAME][,ivshmem].
Result<MachineOptions> completed_target(const std::string& text) {
  constexpr std::string_view kName = "name=";
  MachineOptions machine;
  const std::vector<std::string> words = split(text);
  machine.attach = TRY(vmm::parse_attach_target(words.front()));
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "ivshmem") {
      machine.plug_card = true;
      continue;
    }
    if (!words[i].starts_with(kName) || words[i].size() == kName.size()) {
      return fail(ErrorCode::Usage,
                  fmt::format("--attach '{}': after the comma stands name=NAME or ivshmem", text));
    }
    TRY(set_name(machine, words[i].substr(kName.size())));
  }
  return machine;
}

Result<MachineOptions> completed(const MachineOptions& given, const MachineOptions& common) {
  if (given.attach) return completed_target(given.attach->text);
  MachineOptions machine = common;
  const bool is_image = !given.image.empty();
  const std::vector<std::string> words = split(is_image ? given.image : given.guest.kernel);
  const std::string_view option = is_image ? "--image" : "--kernel";
  if (words.front().empty()) return fail(ErrorCode::Usage, fmt::format("{}: name one", option));
  (is_image ? machine.image : machine.guest.kernel) = words.front();
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (is_image && words[i].starts_with("initrd=")) {
      return fail(ErrorCode::Usage, "--image: an image has an initrd of its own");
    }
    TRY(set_own(machine, option, words[i]));
  }
  return machine;
}

/// Fit for a probe description: the image's, or the kernel file's last part.
std::string default_name(const MachineOptions& machine) {
  std::string name = machine.image;
  if (name.empty()) name = machine.guest.kernel.substr(machine.guest.kernel.rfind('/') + 1);
  std::ranges::replace_if(name, std::not_fn(is_name_character), '_');
  return name;
}

Result<void> name_machines(std::vector<MachineOptions>& machines) {
  const auto taken = [&machines](const std::string& name) {
    return std::ranges::count(machines, name, &MachineOptions::name);
  };
  for (const MachineOptions& machine : machines) {
    if (machine.name.empty() || taken(machine.name) == 1) continue;
    return fail(ErrorCode::Usage, fmt::format("two machines are named {}", machine.name));
  }
  for (auto at = machines.begin(); at != machines.end(); ++at) {
    const auto is_same = [&](const MachineOptions& other) {
      return at->attach && other.attach && other.attach->text == at->attach->text;
    };
    if (std::find_if(std::next(at), machines.end(), is_same) == machines.end()) continue;
    return fail(ErrorCode::Usage,
                fmt::format("'{}' is named twice: name each machine once", at->attach->text));
  }
  for (MachineOptions& machine : machines) {
    if (!machine.name.empty() || machine.attach) continue;
    const std::string first = default_name(machine);
    std::string name = first;
    for (unsigned n = 2; taken(name) != 0; ++n) name = fmt::format("{}-{}", first, n);
    machine.name = std::move(name);
  }
  return {};
}

/// Refuses options of our own VMM for a QEMU, and QEMU's options for our own VMM.
Result<void> check_kind(const MachineOptions& machine) {
  if (machine.choice == MachineChoice::Kvm) {
    if (machine.qemu.as_is) {
      return fail(ErrorCode::Unsupported,
                  "--as-is: our own VMM always sets memory aside for the stub; use --machine qemu");
    }
    if (!machine.qemu.keep) return {};
    return fail(ErrorCode::Unsupported,
                "--keep: a guest of --machine kvm lives in ringside itself; let it run on with "
                "--machine qemu");
  }
  const vmm::KvmConfig plain;
  std::string_view option;
  if (!machine.kvm.disks.empty()) option = "--disk";
  if (machine.kvm.terminal) option = "--console";
  if (machine.kvm.boot != plain.boot) option = "--boot";
  if (machine.after_boot) option = "--after-boot";
  if (machine.kvm.device != plain.device) option = "--kvm-device";
  if (option.empty()) return {};
  return fail(ErrorCode::Usage, fmt::format("{} needs --machine kvm", option));
}

/// Options about machines that ringside starts have no meaning for those that run already.
Result<void> check_attached(const CommandLine& line) {
  const auto is_attached = [](const MachineOptions& machine) { return machine.attach.has_value(); };
  if (std::ranges::none_of(line.machines, is_attached)) return {};
  if (!line.commands.empty()) {
    return fail(ErrorCode::Unsupported,
                "-c: a command can be run in a guest of ringside's own images, not in a machine "
                "that runs already");
  }
  if (!std::ranges::all_of(line.machines, is_attached)) return {};
  const MachineOptions plain;
  const MachineOptions& common = line.common;
  std::string_view option;
  if (common.guest.vcpus != plain.guest.vcpus) option = "--cpus";
  if (common.guest.memory != plain.guest.memory) option = "--memory";
  if (!common.guest.append.empty() || !line.settings.boot_arguments.empty()) option = "--append";
  if (!common.guest.initrd.empty()) option = "--initrd";
  if (common.choice != plain.choice) option = "--machine";
  if (common.qemu.keep) option = "--keep";
  if (common.qemu.program != plain.qemu.program) option = "--qemu";
  if (option.empty()) return {};
  return fail(ErrorCode::Usage,
              fmt::format("{} is for machines that ringside starts, not for --attach", option));
}

/// Refuses options that two machines cannot share.
Result<void> check_shared(const MachineOptions& common) {
  if (common.qemu.keep) {
    return fail(ErrorCode::Unsupported, "--keep: only one machine can be left running");
  }
  if (common.kvm.terminal) {
    return fail(ErrorCode::Unsupported, "--console: there is one terminal, for one machine");
  }
  for (const vmm::DiskConfig& disk : common.kvm.disks) {
    if (disk.read_only) continue;
    return fail(ErrorCode::Unsupported,
                fmt::format("--disk {}: two machines would write to it; give --disk {},ro",
                            disk.path, disk.path));
  }
  return {};
}

}  // namespace

Result<void> set_cpus(vmm::GuestConfig& config, std::string_view text) {
  const auto cpus = parse_number(text);
  if (!cpus || *cpus < 1 || *cpus > kMaxCpus) {
    return fail(ErrorCode::Usage, fmt::format("--cpus {}: a number from 1 to {}", text, kMaxCpus));
  }
  config.vcpus = static_cast<unsigned>(*cpus);
  return {};
}

Result<void> set_memory(vmm::GuestConfig& config, std::string_view text) {
  constexpr std::uint64_t kLeast = 256 << 20;  // vmm's own limit
  const auto bytes = parse_size(text);
  if (!bytes || *bytes < kLeast || *bytes % (1 << 20) != 0) {
    return fail(ErrorCode::Usage,
                fmt::format("--memory {}: a size of 256m or more, in whole megabytes", text));
  }
  config.memory = *bytes;
  return {};
}

Result<void> complete_machines(CommandLine& line) {
  for (MachineOptions& machine : line.machines) machine = TRY(completed(machine, line.common));
  return name_machines(line.machines);
}

Result<void> check_machines(const CommandLine& line) {
  TRY(check_attached(line));
  if (!line.common.guest.initrd.empty() &&
      std::ranges::none_of(line.machines, [](const auto& each) { return each.image.empty(); })) {
    return fail(ErrorCode::Usage, "--initrd needs --kernel");
  }
  if (line.common.choice == MachineChoice::Kvm && line.machines.empty()) {
    return fail(ErrorCode::Usage, "--machine kvm needs --kernel or --image");
  }
  if (line.machines.size() > 1) {
    TRY(check_shared(line.common));
    if (line.task == CommandLine::Task::Save) {
      return fail(ErrorCode::Unsupported, "compile: name one machine, whose kernel it is for");
    }
  }
  return check_kind(line.common);
}

}  // namespace ringside::cli
