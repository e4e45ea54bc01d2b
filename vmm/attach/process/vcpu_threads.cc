#include "vmm/attach/process/vcpu_threads.h"

#include <asm/unistd_64.h>
#include <fmt/format.h>
#include <linux/kvm.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <span>
#include <thread>

#include "vmm/base/numbers.h"

namespace ringside::vmm {
namespace {

// A vCPU's thread that works on an exit for its guest is back in KVM after a moment.
constexpr int kLooks = 60;
constexpr std::chrono::milliseconds kFirstNap{1}, kLongestNap{50};

using Found = std::map<unsigned, std::set<pid_t>>;

/// The descriptor on which this thread runs a vCPU.
std::optional<int> run_descriptor(const HostProcess& process, pid_t thread,
                                  ThreadStopper& stopper) {
  const auto seen = process.activity_of(thread);
  if (seen.activity == HostProcess::Activity::InSystemCall) {
    if (!is_kvm_run(seen.call.number, seen.call.second)) return std::nullopt;
    return static_cast<int>(seen.call.first);
  }
  if (seen.activity != HostProcess::Activity::Running) return std::nullopt;
  // On a CPU just now, perhaps in the guest.
  if (!stopper.stop(std::span(&thread, 1))) return std::nullopt;
  const auto registers = stopper.registers(0);
  stopper.let_go();
  const bool in_kvm =
      registers && is_kvm_run(static_cast<std::int64_t>(registers->orig_rax), registers->rsi);
  return in_kvm ? std::optional(static_cast<int>(registers->rdi)) : std::nullopt;
}

std::map<unsigned, std::uint64_t> run_pages(const std::vector<MemoryMapping>& mappings) {
  std::map<unsigned, std::uint64_t> pages;
  for (const MemoryMapping& mapping : mappings) {
    const auto number = vcpu_number(mapping.name);
    if (number && mapping.offset == 0) pages.emplace(*number, mapping.begin);
  }
  return pages;
}

void look(const HostProcess& process, const std::set<unsigned>& wanted, ThreadStopper& stopper,
          Found& found) {
  for (const pid_t thread : process.threads()) {
    const bool known =
        std::ranges::any_of(found, [&](const auto& each) { return each.second.contains(thread); });
    if (known) continue;
    const auto descriptor = run_descriptor(process, thread, stopper);
    const auto number =
        descriptor ? vcpu_number(process.target_of(*descriptor)) : std::optional<unsigned>();
    if (number && wanted.contains(*number)) found[*number].insert(thread);
  }
}

tl::unexpected<Error> unfit(const HostProcess& process, std::string_view why) {
  return fail(ErrorCode::Unsupported, fmt::format("process {} {}", process.pid(), why));
}

}  // namespace

std::optional<unsigned> vcpu_number(const std::string& target) {
  constexpr std::string_view kPrefix = "anon_inode:kvm-vcpu:";
  if (!target.starts_with(kPrefix)) return std::nullopt;
  return parse_number<unsigned>(std::string_view(target).substr(kPrefix.size()));
}

std::set<unsigned> vcpu_numbers(const std::vector<HostProcess::Descriptor>& descriptors) {
  std::set<unsigned> numbers;
  for (const auto& descriptor : descriptors) {
    if (const auto number = vcpu_number(descriptor.target)) numbers.insert(*number);
  }
  return numbers;
}

Result<std::set<unsigned>> vcpus_in_use(const HostProcess& process) {
  std::set<unsigned> numbers = vcpu_numbers(TRY(process.descriptors()));
  const auto pages = run_pages(TRY(process.mappings()));
  // None at all: nobody has said where they are.
  if (!pages.empty())
    std::erase_if(numbers, [&](unsigned number) { return !pages.contains(number); });
  return numbers;
}

bool is_kvm_run(std::int64_t number, std::uint64_t command) {
  return number == __NR_ioctl && command == KVM_RUN;
}

bool has_vcpu_in_kvm(const HostProcess& process) {
  for (const pid_t thread : process.threads()) {
    const auto seen = process.activity_of(thread);
    if (seen.activity == HostProcess::Activity::Running) return true;
    if (seen.activity == HostProcess::Activity::InSystemCall &&
        is_kvm_run(seen.call.number, seen.call.second) &&
        vcpu_number(process.target_of(static_cast<int>(seen.call.first)))) {
      return true;
    }
  }
  return false;
}

Result<std::vector<VcpuThread>> find_vcpu_threads(const HostProcess& process,
                                                  ThreadStopper& stopper) {
  const std::set<unsigned> wanted = TRY(vcpus_in_use(process));
  if (wanted.empty()) return unfit(process, "runs no vCPU by KVM");
  Found found;
  auto nap = kFirstNap;
  for (int i = 0; i < kLooks && found.size() < wanted.size(); ++i) {
    if (i > 0) {
      std::this_thread::sleep_for(nap);
      nap = std::min(nap * 2, kLongestNap);
    }
    look(process, wanted, stopper, found);
  }
  if (found.size() < wanted.size()) {
    return unfit(process, fmt::format("runs only {} of its {} vCPUs: has its owner paused the "
                                      "guest? Let it go on first",
                                      found.size(), wanted.size()));
  }
  const auto pages = run_pages(TRY(process.mappings()));
  std::vector<VcpuThread> threads;
  for (const auto& [number, claimants] : found) {
    if (claimants.size() > 1) {
      return unfit(process, fmt::format("has {} threads that run a vCPU {}: more than one guest in "
                                        "a process is not supported",
                                        claimants.size(), number));
    }
    const auto page = pages.find(number);
    threads.push_back({.number = number,
                       .thread = *claimants.begin(),
                       .run_page = page == pages.end() ? 0 : page->second});
  }
  return threads;
}

Result<void> update_vcpu_threads(const HostProcess& process, ThreadStopper& stopper,
                                 std::vector<VcpuThread>& threads) {
  const std::vector<pid_t> alive = process.all_threads();
  std::erase_if(threads, [&](const VcpuThread& each) {
    return !std::ranges::binary_search(alive, each.thread);
  });
  const auto is_known = [&](unsigned number) {
    return std::ranges::find(threads, number, &VcpuThread::number) != threads.end();
  };
  if (std::ranges::all_of(TRY(vcpus_in_use(process)), is_known)) return {};
  for (VcpuThread each : TRY(find_vcpu_threads(process, stopper))) {
    if (is_known(each.number)) continue;
    each.is_plugged_in = true;
    threads.push_back(each);
  }
  return {};
}

}  // namespace ringside::vmm
