// A guest for unit tests: 4 MiB of memory with real page tables, a kernel with two CPUs and one
// task, a machine that counts its pauses, a shim whose traps the test makes, a sink that remembers.
// Kernel address kKernelBase + p is guest-physical p; so is user address kUserBase + p.
// Used by this folder's tests; not linked into the product.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "providers/dispatch/probe_sink.h"
#include "vmm/inert_machine_for_tests.h"
#include "vmm/linux/inert_kernel_for_tests.h"
#include "vmm/linux/kernel.h"
#include "vmm/shim/trap.h"

namespace ringside::providers {

inline constexpr std::uint64_t kKernelBase = 0xffff'ffff'8000'0000;
inline constexpr std::uint64_t kUserBase = 0x40'0000'0000;
inline constexpr std::uint64_t kGuestBytes = 4 << 20;

/// Where things lie in the fake guest, guest-physical.
inline constexpr std::uint64_t kRoot = 0x1000, kTask = 0x10000, kParent = 0x11000, kCred = 0x12000,
                               kPercpu0 = 0x20000, kPercpu1 = 0x21000, kStack = 0x30000,
                               kRegs = 0x31000;

class FakeMemory {
 public:
  FakeMemory() : bytes_(kGuestBytes) {
    put64(kRoot + 511 * 8, 0x2000 | 1);  // kKernelBase: PML4[511], PDPT[510]
    put64(0x2000 + 510 * 8, 0x3000 | 1);
    put64(kRoot + 0, 0x4000 | 1);  // kUserBase: PML4[0], PDPT[256]
    put64(0x4000 + 256 * 8, 0x3000 | 1);
    for (std::uint64_t page = 0; page < 2; ++page) {
      put64(0x3000 + page * 8, page << 21 | 0x81);  // 2 MiB pages
    }
    memory_ = vmm::GuestMemory({{GuestPhys(0), bytes_}});
  }
  void put64(std::uint64_t at, std::uint64_t value) { put(at, &value, sizeof value); }
  void put32(std::uint64_t at, std::uint32_t value) { put(at, &value, sizeof value); }
  void put(std::uint64_t at, const void* from, std::size_t size) {
    std::memcpy(bytes_.data() + at, from, size);
  }
  vmm::GuestMemory& memory() { return memory_; }

 private:
  std::vector<std::byte> bytes_;
  vmm::GuestMemory memory_;
};

inline GuestVirt kernel_address(std::uint64_t physical) {
  return GuestVirt(kKernelBase + physical);
}

class FakeKernel final : public guest_linux::InertKernel {
 public:
  FakeKernel() : InertKernel(GuestPhys(kRoot)) {
    layout_.task_comm = 0;
    layout_.task_pid = 16;
    layout_.task_tgid = 20;
    layout_.task_real_parent = 24;
    layout_.task_cred = 32;
    layout_.task_sum_exec_runtime = 40;
    layout_.task_exec_start = 64;
    layout_.rq_clock = 8;
    layout_.rq_clock_task = 16;
    layout_.task_start_time = 72;
    layout_.task_mm = 48;
    layout_.task_stack = 56;
    layout_.cred_uid = 4;
    layout_.cred_gid = 8;
  }
  /// The task that both CPUs run, and its parent.
  static void write_task(FakeMemory& memory) {
    memory.put(kTask, "workload", 9);
    memory.put32(kTask + 16, 101);
    memory.put32(kTask + 20, 100);
    memory.put64(kTask + 24, kKernelBase + kParent);
    memory.put64(kTask + 32, kKernelBase + kCred);
    memory.put64(kTask + 40, 123'456);
    memory.put32(kParent + 20, 1);
    memory.put32(kCred + 4, 1000);
    memory.put32(kCred + 8, 1001);
    memory.put64(kPercpu0, kKernelBase + kTask);
    memory.put64(kPercpu1, kKernelBase + kTask);
  }

  std::string_view release() const override { return "6.1.0-fake"; }
  guest_linux::SymbolTable& symbols_to_fill() { return symbols_; }
  TypeGraph& own_types() { return types_; }
  guest_linux::KernelLayout& layout_to_change() { return layout_; }
  std::optional<TypeId> prototype(const guest_linux::Symbol& function) const override {
    for (const auto& [name, type] : prototypes) {
      if (name == function.name) return type;
    }
    return std::nullopt;
  }
  std::span<const std::uint64_t> percpu_bases() const override { return bases_; }
  std::optional<std::uint32_t> cpu_of(GuestVirt base) const override {
    for (std::uint32_t cpu = 0; cpu < bases_.size(); ++cpu) {
      if (bases_[cpu] == base.raw()) return cpu;
    }
    return std::nullopt;
  }
  Result<GuestVirt, Fault> current_task(const GuestReader& kernel,
                                        GuestVirt percpu_base) const override {
    ++current_reads;
    return GuestVirt(TRY(load<std::uint64_t>(kernel, percpu_base)));
  }

  std::vector<std::pair<std::string, TypeId>> prototypes;
  mutable std::atomic<unsigned> current_reads = 0;

 private:
  std::vector<std::uint64_t> bases_{kKernelBase + kPercpu0, kKernelBase + kPercpu1};
};

class FakeMachine final : public vmm::InertMachine {
 public:
  explicit FakeMachine(FakeMemory& memory) : memory_(memory) {}
  unsigned count() const override { return static_cast<unsigned>(vcpus.size()); }
  vmm::GuestMemory& memory() override { return memory_.memory(); }

  std::vector<Registers> vcpus = std::vector<Registers>(2);
  bool dead = false, asleep = false;
  unsigned pauses = 0;
  bool paused = false;

 protected:
  Result<void> pause() override {
    ++pauses;
    if (dead) return fail(ErrorCode::MachineGone, "the fake machine is gone");
    if (asleep) return fail(ErrorCode::Io, "the fake machine sleeps");
    paused = true;
    return {};
  }
  Result<void> resume() override {
    paused = false;
    return {};
  }
  Result<Registers> registers(unsigned vcpu) override { return vcpus[vcpu]; }

 private:
  FakeMemory& memory_;
};

struct Firing {
  dif::ProbeId probe;
  dif::FireRecord record;
  std::uint64_t arg0 = 0, arg1 = 0;
  std::string execname;
};

class RecordingSink final : public ProbeSink {
 public:
  BriefLock& firing_lock(std::uint32_t vcpu) override { return firing_locks_.at(vcpu); }
  void wait_for_firings() override {
    for (BriefLock& lock : firing_locks_) const std::lock_guard waited(lock);
  }
  void fire(dif::ProbeId probe, const dif::FireRecord& record,
            const dif::GuestContext& guest) override {
    const std::lock_guard one_vector(lock_);
    char name[16];
    const auto length = guest.execname(name);
    firings.push_back({probe, record, guest.argument(0).value_or(~0ULL),
                       guest.argument(1).value_or(~0ULL), std::string(name, length.value_or(0))});
    ++fired;
  }
  bool finished() const override { return false; }

  std::vector<std::uint32_t> ids() const {
    std::vector<std::uint32_t> ids;
    for (const Firing& firing : firings) ids.push_back(firing.probe.value);
    return ids;
  }

  /// From another thread, too.
  std::size_t fired_of(dif::ProbeId probe) {
    const std::lock_guard looking(lock_);
    return static_cast<std::size_t>(std::ranges::count(firings, probe, &Firing::probe));
  }

  std::vector<Firing> firings;
  std::atomic<unsigned> fired = 0;  // to watch from another thread

 private:
  std::array<BriefLock, 256> firing_locks_;
  std::mutex lock_;
};

/// Counts how often each probe fired on each of two vCPUs; probes are told apart by 6 bits.
class CountingSink final : public ProbeSink {
 public:
  BriefLock& firing_lock(std::uint32_t vcpu) override { return firing_locks_.at(vcpu); }
  void wait_for_firings() override {
    for (BriefLock& lock : firing_locks_) const std::lock_guard waited(lock);
  }
  void fire(dif::ProbeId probe, const dif::FireRecord& record, const dif::GuestContext&) override {
    ++fired_.at(probe.value % kProbes)[record.vcpu];
  }
  bool finished() const override { return false; }

  std::uint64_t of(dif::ProbeId probe, unsigned vcpu) const {
    return fired_.at(probe.value % kProbes)[vcpu];
  }
  std::uint64_t of(dif::ProbeId probe) const { return of(probe, 0) + of(probe, 1); }

 private:
  static constexpr std::uint32_t kProbes = 64;
  static constexpr unsigned kVcpus = 2;
  std::array<BriefLock, kVcpus> firing_locks_;
  std::array<std::array<std::atomic<std::uint64_t>, kVcpus>, kProbes> fired_{};
};

}  // namespace ringside::providers
