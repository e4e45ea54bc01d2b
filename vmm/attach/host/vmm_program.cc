#include "vmm/attach/host/vmm_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "vmm/base/numbers.h"
#include "vmm/base/printable.h"

namespace ringside::vmm {

namespace {

using Words = std::vector<std::string>;

/// KEY=VALUE,... as QEMU parts it: two commas stand for one. A first part without a key belongs to
/// `implied`.
class Suboptions {
 public:
  Suboptions(std::string_view text, std::string_view implied) {
    std::string part;
    for (std::size_t i = 0; i <= text.size(); ++i) {
      const bool end = i == text.size() || text[i] == ',';
      if (end && i + 1 < text.size() && text[i + 1] == ',') {
        part += text[i++];
      } else if (end) {
        add(std::exchange(part, {}), implied);
      } else {
        part += text[i];
      }
    }
  }
  std::string operator[](std::string_view key) const {
    for (const auto& [name, value] : values_) {
      if (name == key) return value;
    }
    return {};
  }

 private:
  void add(const std::string& part, std::string_view implied) {
    const std::size_t equals = part.find('=');
    if (equals != part.npos) {
      values_.emplace_back(part.substr(0, equals), part.substr(equals + 1));
    } else if (values_.empty() && !implied.empty()) {
      values_.emplace_back(implied, part);
    } else {
      values_.emplace_back(part, "on");
    }
  }
  std::vector<std::pair<std::string, std::string>> values_;
};

/// Calls `each` with the word after each of these options; they begin with one dash or two.
void for_each_value(const Words& words, std::string_view option,
                    const std::function<void(const std::string&)>& each) {
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    std::string_view word = words[i];
    if (!word.starts_with('-')) continue;
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    if (word == option) each(words[i + 1]);
  }
}

std::string last_value(const Words& words, std::string_view option) {
  std::string last;
  for_each_value(words, option, [&](const std::string& value) { last = value; });
  return last;
}

/// The path of a listening socket, "unix:PATH,server=on".
std::string unix_path(const std::string& device) {
  constexpr std::string_view kUnix = "unix:";
  return device.starts_with(kUnix) ? Suboptions(device.substr(kUnix.size()), "path")["path"] : "";
}

std::string find_qmp(const Words& words) {
  std::string found;
  for (const std::string_view option : {"qmp", "qmp-pretty"}) {
    for_each_value(words, option, [&](const std::string& value) {
      if (found.empty()) found = unix_path(value);
    });
  }
  for_each_value(words, "mon", [&](const std::string& value) {
    const Suboptions monitor(value, "chardev");
    if (!found.empty() || monitor["mode"] != "control") return;
    for_each_value(words, "chardev", [&](const std::string& device) {
      const Suboptions socket(device, "backend");
      if (socket["id"] == monitor["chardev"] && socket["backend"] == "socket") {
        found = socket["path"];
      }
    });
  });
  return found;
}

/// Whether libvirt holds its monitor, which takes one client at a time.
bool is_of_libvirt(const Words& words) {
  bool found = false;
  for_each_value(words, "chardev", [&](const std::string& device) {
    found = found || Suboptions(device, "backend")["id"] == "charmonitor";
  });
  return found;
}

std::optional<std::uint64_t> parse_memory(const std::string& text) {
  std::string_view suffix = text;
  const auto number = take_number<std::uint64_t>(suffix);
  if (!number) return std::nullopt;
  constexpr std::string_view kSuffixes = "KMGT";
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; };
  const std::size_t place = suffix.empty() ? 1 : kSuffixes.find(upper(suffix.front()));
  const std::uint64_t unit = std::uint64_t{1} << (10 * (place + 1));
  if (place == kSuffixes.npos || *number == 0 || *number > (std::uint64_t{1} << 50) / unit) {
    return std::nullopt;
  }
  return *number * unit;
}

std::optional<unsigned> parse_count(const std::string& text) {
  const auto count = parse_number<unsigned>(text);
  return count && *count > 0 ? count : std::nullopt;
}

void read_qemu(VmmProgram& found, const Words& words) {
  found.kind = VmmKind::Qemu;
  found.title = "qemu";
  found.name = Suboptions(last_value(words, "name"), "guest")["guest"];
  if (is_of_libvirt(words)) {
    found.domain = found.name;
    found.domain_uuid = last_value(words, "uuid");
  } else {
    found.qmp_path = find_qmp(words);
  }
  found.vcpus = parse_count(Suboptions(last_value(words, "smp"), "cpus")["cpus"]);
  found.memory = parse_memory(Suboptions(last_value(words, "m"), "size")["size"]);
}

}  // namespace

std::string fit_machine_name(std::string name) {
  constexpr std::size_t kLongest = 64;
  if (name.size() > kLongest) name.resize(kLongest);
  const auto unfit = [](unsigned char c) {
    return std::isalnum(c) == 0 && c != '-' && c != '_' && c != '.';
  };
  std::ranges::replace_if(name, unfit, '_');
  return name;
}

VmmProgram describe_program(const std::string& program, const Words& words, pid_t pid) {
  VmmProgram found;
  found.title = program;
  constexpr std::string_view kEmulator = "qemu-system-";
  // Of a process that is not for us only this much of the name is to be seen (TASK_COMM_LEN).
  constexpr std::size_t kCut = 15;
  const bool is_whole = program.size() != kCut || program == "qemu-system-arm";
  if (program.starts_with(kEmulator) && is_whole) {
    const std::size_t end = program.find('-', kEmulator.size());
    found.processor = program.substr(kEmulator.size(), end - kEmulator.size());
  }
  if (program.starts_with(kEmulator) || program == "qemu-kvm" || program == "kvm") {
    read_qemu(found, words);
  } else if (program == "firecracker") {
    found.name = last_value(words, "id");
  } else {
    found.name = last_value(words, "name");
  }
  found.name = fit_machine_name(std::move(found.name));
  if (found.name.empty()) found.name = fit_machine_name(fmt::format("{}-{}", found.title, pid));
  return found;
}

VmmProgram describe_program(const HostProcess& process) {
  VmmProgram found = describe_program(process.program(), process.command_line(), process.pid());
  // The path means something in its folder, not in ours.
  if (!found.qmp_path.empty() && !found.qmp_path.starts_with('/')) {
    const std::string folder = process.folder();
    if (!folder.empty()) found.qmp_path = folder + '/' + found.qmp_path;
  }
  return found;
}

Result<void> check_guest_processor(const HostProcess& process, const VmmProgram& program) {
  if (program.processor.empty() || program.processor == "x86_64") return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("process {}: its guest's processor is {:.20}: ringside knows x86_64 only",
                          process.pid(), printable(program.processor)));
}

Result<void> check_memory_is_here(const HostProcess& process, const VmmProgram& program,
                                  const std::vector<HostProcess::Descriptor>& descriptors) {
  if (program.kind != VmmKind::Qemu) return {};
  const bool waits = std::ranges::any_of(
      descriptors, [](const auto& each) { return each.target == "anon_inode:[userfaultfd]"; });
  if (!waits) return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("process {}: its guest's memory still arrives from another host, or is "
                          "being saved (userfaultfd), and it may stand still for that: try again "
                          "when that is completed (query-migrate)",
                          process.pid()));
}

Error runs_no_guest(const HostProcess& process) {
  return {ErrorCode::Unsupported,
          fmt::format("process {} ({}) runs no virtual machine: it has no vCPU of KVM",
                      process.pid(), printable(process.program()))};
}

}  // namespace ringside::vmm
