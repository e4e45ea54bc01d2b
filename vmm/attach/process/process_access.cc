#include "vmm/attach/process/process_access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <utility>

#include "vmm/base/unique_fd.h"

namespace ringside::vmm {
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
