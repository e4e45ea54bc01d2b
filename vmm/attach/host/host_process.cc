// In this file, top to bottom: files and folders, lines, who it is, memory, threads, descriptors.
#include "vmm/attach/host/host_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "vmm/base/numbers.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

namespace {

// A process has at most as many mappings as vm.max_map_count says; nobody sets it this high.
constexpr std::size_t kMostBytes = 64 << 20;
constexpr std::size_t kMostEntries = 1 << 20;

/// A file of /proc; empty with errno when it cannot be read.
std::optional<std::string> read_whole(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text;
  std::array<char, 65536> buffer;
  while (text.size() < kMostBytes) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return text;
}

std::string first_line(const std::optional<std::string>& text) {
  return text ? text->substr(0, text->find('\n')) : std::string();
}

std::string link_target(const std::string& path) {
  std::array<char, 4096> target;
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return length < 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(length));
}

std::optional<int> whole_number(std::string_view text) {
  const auto number = parse_number<int>(text);
  return number && *number >= 0 ? number : std::nullopt;
}

/// The entries of a folder that are numbers, in order; empty with errno when it cannot be read.
std::optional<std::vector<int>> numbered_entries(const std::string& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  std::vector<int> numbers;
  while (!error && entries != std::filesystem::directory_iterator() &&
         numbers.size() < kMostEntries) {
    if (const auto number = whole_number(entries->path().filename().native())) {
      numbers.push_back(*number);
    }
    entries.increment(error);
  }
  // A folder whose process ends while it is read has what was read so far.
  if (error && numbers.empty()) {
    errno = error.value();
    return std::nullopt;
  }
  std::ranges::sort(numbers);
  return numbers;
}

tl::unexpected<Error> unreadable(const std::string& path) {
  const int why = errno;
  if (why == ENOENT || why == ESRCH) {
    return fail(ErrorCode::NotFound, fmt::format("{}: there is no such process", path));
  }
  return fail(ErrorCode::Io, fmt::format("{} cannot be read: {}", path, std::strerror(why)));
}

}  // namespace

std::optional<MemoryMapping> parse_mapping(const std::string& line) {
  MemoryMapping mapping;
  std::array<char, 5> permissions{};
  unsigned major_number = 0, minor_number = 0;
  int name_at = 0;
  if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4c %" SCNx64 " %x:%x %" SCNu64 " %n",
                  &mapping.begin, &mapping.end, permissions.data(), &mapping.offset, &major_number,
                  &minor_number, &mapping.inode, &name_at) != 7) {
    return std::nullopt;
  }
  if (mapping.begin >= mapping.end) return std::nullopt;
  mapping.device = makedev(major_number, minor_number);
  mapping.readable = permissions[0] == 'r';
  mapping.writable = permissions[1] == 'w';
  mapping.shared = permissions[3] == 's';
  mapping.name = line.substr(std::min<std::size_t>(static_cast<std::size_t>(name_at), line.size()));
  return mapping;
}

std::vector<HostProcess> HostProcess::all(const std::string& proc) {
  std::vector<HostProcess> processes;
  for (const int pid : numbered_entries(proc).value_or(std::vector<int>())) {
    processes.emplace_back(pid, proc);
  }
  return processes;
}

std::string HostProcess::path(const std::string& name) const {
  return fmt::format("{}/{}/{}", proc_, pid_, name);
}

bool HostProcess::exists() const {
  return ::access(path("stat").c_str(), F_OK) == 0;
}

std::optional<std::uint64_t> HostProcess::stat_field(const std::string& file, int number) const {
  const std::string stat = read_whole(path(file)).value_or("");
  // The name in parentheses, field 2, is the process's own choice.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == stat.npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string skipped;
  for (int i = 3; i < number; ++i) fields >> skipped;
  std::uint64_t value = 0;
  return fields >> value ? std::optional(value) : std::nullopt;
}

std::optional<std::uint64_t> HostProcess::start_time() const {
  return stat_field("stat", 22);
}

std::string HostProcess::comm() const {
  return first_line(read_whole(path("comm")));
}

std::string HostProcess::program() const {
  std::string file = link_target(path("exe"));
  constexpr std::string_view kDeleted = " (deleted)";
  if (file.ends_with(kDeleted)) file.resize(file.size() - kDeleted.size());
  file = file.substr(file.rfind('/') + 1);
  return file.empty() ? comm() : file;
}

std::vector<std::string> HostProcess::command_line() const {
  std::vector<std::string> words;
  std::istringstream text(read_whole(path("cmdline")).value_or(""));
  for (std::string word; std::getline(text, word, '\0');) words.push_back(word);
  return words;
}

std::string HostProcess::folder() const {
  return link_target(path("cwd"));
}

std::string HostProcess::status_field(const std::string& file, const std::string& key) const {
  std::istringstream lines(read_whole(path(file)).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key + ":")) continue;
    const std::size_t value = line.find_first_not_of(" \t", key.size() + 1);
    return value == line.npos ? std::string() : line.substr(value);
  }
  return {};
}

char HostProcess::state_of(pid_t thread) const {
  const std::string state = status_field(fmt::format("task/{}/status", thread), "State");
  return state.empty() ? ' ' : state.front();
}

Result<void> HostProcess::check_not_stopped() const {
  if (state() != 'T') return {};
  return fail(
      ErrorCode::Io,
      fmt::format("process {} is stopped by a signal: 'kill -CONT {}' lets it go on", pid_, pid_));
}

std::optional<uid_t> HostProcess::user() const {
  const std::string users = status_field("status", "Uid");  // real, effective, saved, file system
  const auto user = whole_number(users.substr(0, users.find_first_of(" \t")));
  return user ? std::optional(static_cast<uid_t>(*user)) : std::nullopt;
}

Result<std::vector<MemoryMapping>> HostProcess::mappings() const {
  const auto text = read_whole(path("maps"));
  if (!text) return unreadable(path("maps"));
  std::vector<MemoryMapping> mappings;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line) && mappings.size() < kMostEntries;) {
    auto mapping = parse_mapping(line);
    // The kernel lists them in order; what is not in order is no such list.
    const bool in_order = mapping && (mappings.empty() || mappings.back().end <= mapping->begin);
    if (!in_order) {
      return fail(ErrorCode::Invalid, fmt::format("{} makes no sense: {}", path("maps"), line));
    }
    mappings.push_back(std::move(*mapping));
  }
  return mappings;
}

std::vector<pid_t> HostProcess::threads() const {
  // include/linux/sched.h: PF_IO_WORKER, PF_USER_WORKER, PF_KTHREAD.
  constexpr std::uint64_t kWorker = 0x10 | 0x4000 | 0x20'0000;
  std::vector<pid_t> threads = all_threads();
  std::erase_if(threads, [this](pid_t thread) {
    return (stat_field(fmt::format("task/{}/stat", thread), 9).value_or(0) & kWorker) != 0;
  });
  return threads;
}

std::vector<pid_t> HostProcess::all_threads() const {
  return numbered_entries(path("task")).value_or(std::vector<pid_t>());
}

std::optional<std::uint64_t> HostProcess::major_faults(pid_t thread) const {
  return stat_field(fmt::format("task/{}/stat", thread), 12);
}

std::uint64_t HostProcess::swapped_bytes() const {
  std::uint64_t kibibytes = 0;
  std::istringstream(status_field("status", "VmSwap")) >> kibibytes;
  return kibibytes > UINT64_MAX >> 10 ? 0 : kibibytes << 10;
}

pid_t HostProcess::tracer_of(pid_t thread) const {
  return whole_number(status_field(fmt::format("task/{}/status", thread), "TracerPid")).value_or(0);
}

HostProcess::ThreadActivity HostProcess::activity_of(pid_t thread) const {
  const std::string line = first_line(read_whole(path(fmt::format("task/{}/syscall", thread))));
  ThreadActivity found;
  if (line == "running") {
    found.activity = Activity::Running;
  } else if (std::sscanf(line.c_str(), "%" SCNd64 " %" SCNx64 " %" SCNx64, &found.call.number,
                         &found.call.first, &found.call.second) == 3 &&
             found.call.number >= 0) {
    found.activity = Activity::InSystemCall;
  }
  return found;
}

Result<std::vector<HostProcess::Descriptor>> HostProcess::descriptors() const {
  const auto numbers = numbered_entries(path("fd"));
  if (!numbers) return unreadable(path("fd"));
  std::vector<Descriptor> found;
  for (const int number : *numbers) found.push_back({number, target_of(number)});
  return found;
}

std::string HostProcess::target_of(int descriptor) const {
  return link_target(path(fmt::format("fd/{}", descriptor)));
}

namespace {

constexpr unsigned kCapSysPtrace = 19;  // linux/capability.h

bool have_cap_sys_ptrace() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    std::uint64_t effective = 0;
    if (std::sscanf(line.c_str(), "CapEff: %" SCNx64, &effective) != 1) continue;
    return (effective >> kCapSysPtrace & 1) != 0;
  }
  return false;
}

std::optional<int> yama_scope() {
  std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
  int scope = 0;
  return file >> scope ? std::optional(scope) : std::nullopt;
}

std::string user_name(uid_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer;
  const bool known =
      ::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
  return known ? fmt::format("{} ({})", entry.pw_name, user) : std::to_string(user);
}

}  // namespace

Error access_refused(const AccessFacts& facts) {
  constexpr int kAdminOnly = 1, kNobody = 3;
  const auto refused = [&](const std::string& why) {
    return Error{ErrorCode::Io, fmt::format("process {} is not for us: {}", facts.pid, why)};
  };
  if (!facts.their_user) {
    return {ErrorCode::NotFound, fmt::format("there is no process {}", facts.pid)};
  }
  if (facts.yama_scope && *facts.yama_scope >= kNobody) {
    return refused("kernel.yama.ptrace_scope is 3, which forbids it to everybody until a reboot");
  }
  if (!facts.may_trace_all && *facts.their_user != facts.our_user) {
    return refused(fmt::format("it is user {}'s; be that user or root (CAP_SYS_PTRACE)",
                               user_name(*facts.their_user)));
  }
  if (!facts.may_trace_all && facts.yama_scope && *facts.yama_scope >= kAdminOnly) {
    return refused(
        fmt::format("kernel.yama.ptrace_scope is {}; set it to 0 or be root "
                    "(CAP_SYS_PTRACE)",
                    *facts.yama_scope));
  }
  return refused(facts.may_trace_all
                     ? "the kernel refuses it in spite of CAP_SYS_PTRACE (is it in another user "
                       "namespace, or under a security module?)"
                     : "it has changed its user or capabilities, or is not dumpable; be root "
                       "(CAP_SYS_PTRACE)");
}

Error explain_no_access(const HostProcess& process) {
  return access_refused({.pid = process.pid(),
                         .our_user = ::geteuid(),
                         .their_user = process.user(),
                         .yama_scope = yama_scope(),
                         .may_trace_all = have_cap_sys_ptrace()});
}

Error explain_unreadable(const HostProcess& process, Error found) {
  const UniqueFd memory(::open(process.path("mem").c_str(), O_RDONLY | O_CLOEXEC));
  const bool refused = !memory && (errno == EPERM || errno == EACCES);
  return refused ? explain_no_access(process) : std::move(found);
}

}  // namespace ringside::vmm
