// In this file, top to bottom: files, control groups, a look, two looks compared.
#include "vmm/attach/host_share.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "vmm/attach/host/host_process.h"
#include "vmm/base/printable.h"

namespace ringside::vmm {
namespace {

constexpr double kMostOfIt = 0.95;
/// Where the host's kernel waits for who serves a process's page faults (mm/userfaultfd.c).
constexpr std::string_view kBringsMemory = "handle_userfault";
constexpr std::size_t kMostThreads = 4096, kMostName = 40, kMostPath = 200, kMostParents = 64;

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string short_text(std::string_view text, std::size_t most) {
  return printable(text.substr(0, most));
}

/// Where the host's hierarchies with a CPU controller are mounted: of version 1, and of version 2.
struct Mounts {
  std::string first, second;
};

Mounts find_mounts(const std::string& proc) {
  std::ifstream file(proc + "/self/mountinfo");
  Mounts found;
  for (std::string line; std::getline(file, line);) {
    // "31 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct"
    std::istringstream words(line);
    std::string skipped, folder, word, type, device, options;
    words >> skipped >> skipped >> skipped >> skipped >> folder;
    while (words >> word && word != "-") {
    }
    words >> type >> device >> options;
    options.insert(0, ",").push_back(',');
    if (type == "cgroup2" && found.second.empty()) found.second = folder;
    if (type == "cgroup" && options.find(",cpu,") != options.npos) found.first = folder;
  }
  return found;
}

/// The folders of a thread's control groups that may be throttled, from its own upwards.
std::set<std::string> folders_of(const std::string& file, const Mounts& mounts) {
  std::ifstream lines(file);
  std::set<std::string> folders;
  for (std::string line; std::getline(lines, line);) {
    // "4:cpu,cpuacct:/machine/web1", of version 2 "0::/machine.slice/web1"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_second = line.starts_with("0::");
    if (!is_second && controllers.find(",cpu,") == controllers.npos) continue;
    const std::string& mount = is_second ? mounts.second : mounts.first;
    std::string path = line.substr(second + 1);
    if (mount.empty() || !path.starts_with('/') || path.find("/..") != path.npos) continue;
    for (std::size_t i = 0; i < kMostParents && path.size() > 1; ++i) {
      folders.insert(mount + path);
      path.resize(path.rfind('/'));
    }
  }
  return folders;
}

}  // namespace

HostShare HostShare::look(pid_t process, const std::string& proc, Time::time_point now) {
  HostShare share;
  share.at_ = now;
  const HostProcess host(process, proc);
  share.swapped_ = host.swapped_bytes();
  const Mounts mounts = find_mounts(proc);
  std::set<std::string> folders;
  for (const pid_t id : host.threads()) {
    if (share.threads_.size() >= kMostThreads) break;
    const std::string folder = host.path(fmt::format("task/{}/", id));
    Thread thread;
    thread.name = short_text(read_line(folder + "comm"), kMostName);
    thread.state = host.state_of(id);
    thread.major_faults = host.major_faults(id).value_or(0);
    thread.place = short_text(read_line(folder + "wchan"), kMostName);
    std::istringstream(read_line(folder + "schedstat")) >> thread.on_cpu >> thread.in_queue;
    folders.merge(folders_of(folder + "cgroup", mounts));
    share.threads_.emplace(id, std::move(thread));
  }
  for (const std::string& folder : folders) {
    std::ifstream lines(folder + "/cpu.stat");
    Group group;
    std::string key;
    for (std::uint64_t value = 0; lines >> key >> value;) {
      if (key == "nr_periods") group.periods = value;
      if (key == "nr_throttled") group.throttled_periods = value;
    }
    if (group.periods != 0) share.groups_.emplace(folder, group);
  }
  return share;
}

/// Empty: it was not.
std::string HostShare::read_back_since(const HostShare& earlier) const {
  constexpr double kMany = 100;  // a second, each of which takes a disk's access
  std::uint64_t faults = 0;
  for (const auto& [id, thread] : threads_) {
    const auto before = earlier.threads_.find(id);
    if (before == earlier.threads_.end()) continue;
    faults +=
        std::max(thread.major_faults, before->second.major_faults) - before->second.major_faults;
  }
  const double seconds = std::chrono::duration<double>(since(earlier)).count();
  if (swapped_ == 0 || static_cast<double>(faults) < kMany * seconds) return {};
  return fmt::format(
      "the host has swapped out {} MiB of its memory, and read parts of it back {} times in the "
      "last {:.1f} s",
      std::max<std::uint64_t>(swapped_ >> 20, 1), faults, seconds);
}

std::vector<std::string> HostShare::held_back_since(const HostShare& earlier) const {
  std::vector<std::string> lines;
  const auto all = static_cast<double>(since(earlier).count());
  for (const auto& [folder, group] : groups_) {
    const auto before = earlier.groups_.find(folder);
    if (before == earlier.groups_.end()) continue;
    const Group& old = before->second;
    const std::uint64_t periods = group.periods - old.periods;
    const std::uint64_t without = group.throttled_periods - old.throttled_periods;
    if (periods == 0 || without > periods || without * 2 < periods) continue;
    lines.push_back(
        fmt::format("the control group {} of its process is throttled (its quota of CPU time was "
                    "used up in {} of the last {} periods; cpu.max, cpu.cfs_quota_us)",
                    short_text(folder, kMostPath), without, periods));
  }
  if (std::string line = read_back_since(earlier); !line.empty()) lines.push_back(std::move(line));
  for (const auto& [id, thread] : threads_) {
    const auto before = earlier.threads_.find(id);
    if (before == earlier.threads_.end()) continue;
    const Thread& old = before->second;
    const bool stood = thread.on_cpu == old.on_cpu;
    // Time in the queue is added when it gets a CPU.
    const bool queued = stood && thread.state == 'R' && old.state == 'R';
    const std::uint64_t more = std::max(thread.in_queue, old.in_queue) - old.in_queue;
    const double waited = queued ? all : static_cast<double>(more);
    const bool lacks_memory = thread.place == kBringsMemory && old.place == kBringsMemory;
    if (stood && lacks_memory) {
      lines.push_back(
          fmt::format("its thread {} (\"{}\") waits for memory that the host has yet to bring "
                      "(userfaultfd: a migration whose memory follows, a snapshot that is loaded "
                      "when it is used)",
                      id, thread.name));
    } else if (stood && thread.state == 'D' && old.state == 'D') {
      lines.push_back(fmt::format(
          "its thread {} (\"{}\") waits for the host's memory or storage (state D{})", id,
          thread.name, thread.place.empty() || thread.place == "0" ? "" : ", in " + thread.place));
    } else if (waited >= kMostOfIt * all && lines.empty()) {
      lines.push_back(
          fmt::format("its thread {} (\"{}\") wanted a CPU of the host and waited for "
                      "one for {:.1f} of the last {:.1f} s",
                      id, thread.name, std::min(waited, all) / 1e9, all / 1e9));
    }
  }
  return lines;
}

}  // namespace ringside::vmm
