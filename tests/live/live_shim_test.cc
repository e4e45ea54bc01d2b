// The shim on real kernels: in the memory that was set aside at start and in the first megabyte,
// with the guest's RAM mapped in this process and reached by copies only. The guest says how often
// it called; every call is one trap. In this file, top to bottom: a machine by copies, a thread
// that serves, one guest a suite, counts.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <thread>

#include "providers/trap_points/sites/function_sites.h"
#include "providers/trap_points/trap_point_table.h"
#include "tests/live/live_guest.h"
#include "vmm/linux/discovery/discover.h"
#include "vmm/linux/low_memory.h"
#include "vmm/linux/shim_facts.h"
#include "vmm/process_memory.h"
#include "vmm/qemu/qemu_machine.h"
#include "vmm/shim/shim.h"

namespace ringside::live {
namespace {

using vmm::GuestMemory;

constexpr unsigned kVcpus = 2;
constexpr std::uint64_t kOddSize = 7;  // of read(2): nobody else in the guest asks for so much
constexpr std::uint64_t kReads = 20'000;

/// The RAM of a QEMU, looked at as that of a process that we know nothing of but its mappings.
Result<GuestMemory> copied_memory(pid_t pid, std::uint64_t size) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64, &begin, &end) != 2) continue;
    if (end - begin != size) continue;
    std::shared_ptr<vmm::ProcessMemory> memory = TRY(vmm::ProcessMemory::open(pid, begin));
    return GuestMemory::by_copies({{GuestPhys(0), size, std::move(memory), begin}});
  }
  return fail(ErrorCode::NotFound, "no mapping of QEMU is as large as the guest's RAM");
}

/// A machine of ours as if its memory were another process's only: all parts but that are its own.
class CopiedMachine final : public vmm::Machine {
 public:
  CopiedMachine(vmm::Machine& of, GuestMemory memory) : of_(of), memory_(std::move(memory)) {}
  std::string_view kind() const override { return "copied"; }
  GuestMemory& memory() override { return memory_; }
  vmm::Vcpus& vcpus() override { return of_.vcpus(); }
  vmm::CodeWriter& code() override { return of_.code(); }
  vmm::MachineStatus& status() override { return of_.status(); }
  std::optional<GuestMemory::Extent> reserved_memory() const override {
    return of_.reserved_memory();
  }
  void shut_down() override {}

 private:
  vmm::Machine& of_;
  GuestMemory memory_;
};

/// Serves a shim until it ends, and counts the traps that are the test's.
class Server final : public vmm::TrapSink {
 public:
  explicit Server(vmm::Shim& shim) : shim_(shim), thread_([this] { serve(); }) {}
  ~Server() override {
    over_ = true;
    thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void on_trap(const vmm::Trap& trap) override {
    if (trap.registers.rdx == kOddSize) ++ours;
  }

  std::atomic<std::uint64_t> ours{0};

 private:
  void serve() {
    for (unsigned n = 0; !over_; ++n) {
      if (n % 256 == 0) shim_.heartbeat();
      if (shim_.poll(handlers_) == 0) std::this_thread::yield();
    }
  }

  vmm::Shim& shim_;
  const vmm::TrapHandlers handlers_{*this};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

enum class Place : std::uint8_t { SetAside, FirstMegabyte };

/// A shim in a guest with one trap point, at the entry of vfs_read.
class Trace {
 public:
  static Result<std::unique_ptr<Trace>> start(vmm::Machine& machine, guest_linux::Kernel& kernel,
                                              Place place) {
    const auto where = place == Place::SetAside
                           ? machine.reserved_memory().value()
                           : TRY(guest_linux::find_low_memory(machine.memory(), kernel));
    std::cout << fmt::format("the shim takes {} KiB at {:#x}\n", where.size >> 10,
                             where.base.raw());
    const vmm::ShimKernelFacts facts = TRY(guest_linux::find_shim_facts(machine, kernel));
    std::unique_ptr<vmm::Shim> shim;
    {
      auto paused = TRY(vmm::PausedMachine::pause(machine));
      shim = TRY(vmm::Shim::install(paused, where, facts));
    }
    std::unique_ptr<Trace> trace(new Trace(machine, kernel, std::move(shim)));
    TRY(trace->add("vfs_read"));
    trace->shim_->activate();
    TRY(trace->in_a_quiet_moment(
        [&](vmm::PausedMachine& paused) { return trace->table_.arm(paused); }));
    return trace;
  }

  /// Gives the guest back as it was; what the shim counted.
  Result<vmm::ShimCounters> stop() {
    TRY(in_a_quiet_moment([&](vmm::PausedMachine& paused) { return table_.disarm(paused); }));
    shim_->deactivate();
    while (!shim_->quiescent()) std::this_thread::yield();
    const vmm::ShimCounters counters = shim_->counters();
    auto paused = TRY(vmm::PausedMachine::pause(machine_));
    TRY(shim_->retire(paused));
    return counters;
  }
  std::uint64_t seen() const { return server_.ours; }

 private:
  Trace(vmm::Machine& machine, guest_linux::Kernel& kernel, std::unique_ptr<vmm::Shim> shim)
      : machine_(machine),
        kernel_(kernel),
        shim_(std::move(shim)),
        table_(machine, *shim_, kernel),
        server_(*shim_) {}

  Result<void> add(std::string_view function) {
    const guest_linux::Symbol* symbol = kernel_.symbols().find(function, "vmlinux");
    if (symbol == nullptr) return fail(ErrorCode::NotFound, std::string(function));
    const GuestVirt at =
        TRY(providers::entry_site(table_.original_text(), *symbol, &kernel_.symbols()));
    TRY(table_.examine_and_add(at));
    return {};
  }
  Result<void> in_a_quiet_moment(const std::function<Result<void>(vmm::PausedMachine&)>& act) {
    for (;;) {
      {
        auto paused = TRY(vmm::PausedMachine::pause(machine_));
        if (!table_.is_text_changing(paused)) return act(paused);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  vmm::Machine& machine_;
  guest_linux::Kernel& kernel_;
  std::unique_ptr<vmm::Shim> shim_;
  providers::TrapPointTable table_;
  Server server_;
};

struct Case {
  const char* image;
  Place place;
  bool copied;
};

class LiveShim : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto image = find_live_image(GetParam().image);
    if (!image) GTEST_SKIP() << image.error().message;
    auto guest = LiveGuest::boot(*image, kVcpus);
    ASSERT_TRUE(guest) << guest.error().message;
    guest_ = std::move(*guest);
  }

  /// So many reads in two processes at once.
  void read_in_the_guest() {
    const std::string dd =
        fmt::format("dd if=/dev/zero of=/dev/null bs={} count={} 2>/dev/null", kOddSize, kReads);
    const auto said = guest_->run(fmt::format("{} & {}; wait", dd, dd));
    ASSERT_TRUE(said) << said.error().message;
  }
  void count(vmm::Machine& machine, guest_linux::Kernel& kernel) {
    auto trace = Trace::start(machine, kernel, GetParam().place);
    ASSERT_TRUE(trace) << trace.error().message;

    read_in_the_guest();

    const auto counters = (*trace)->stop();
    ASSERT_TRUE(counters) << counters.error().message;
    EXPECT_EQ((*trace)->seen(), 2 * kReads);
    EXPECT_EQ(counters->orphans, 0u);
    EXPECT_EQ(counters->rejected, 0u);
    EXPECT_GE(counters->firings, 2 * kReads);
    read_in_the_guest();
    EXPECT_EQ((*trace)->seen(), 2 * kReads) << "the guest is as it was";
  }

  std::unique_ptr<LiveGuest> guest_;
};

TEST_P(LiveShim, EveryCallIsOneTrap) {
  if (!GetParam().copied) {
    count(guest_->machine(), guest_->kernel());
    return;
  }
  const auto* qemu = dynamic_cast<vmm::QemuMachine*>(&guest_->machine());
  ASSERT_NE(qemu, nullptr);
  auto memory = copied_memory(qemu->host_process(), guest_->machine().memory().size());
  ASSERT_TRUE(memory) << memory.error().message;
  CopiedMachine machine(guest_->machine(), std::move(*memory));
  ASSERT_TRUE(machine.memory().mapping(GuestPhys(0), 8).empty());
  auto kernel = guest_linux::discover_kernel(machine);
  ASSERT_TRUE(kernel) << kernel.error().message;
  count(machine, **kernel);
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const std::string_view image = info.param.image;
  return fmt::format("{}_{}_{}", image == "debian-6.1" ? "Debian61" : "Debian612",
                     info.param.place == Place::SetAside ? "SetAside" : "FirstMegabyte",
                     info.param.copied ? "Copied" : "Mapped");
}

INSTANTIATE_TEST_SUITE_P(Kernels, LiveShim,
                         testing::Values(Case{"debian-6.1", Place::SetAside, true},
                                         Case{"debian-6.1", Place::FirstMegabyte, false},
                                         Case{"debian-6.1", Place::FirstMegabyte, true},
                                         Case{"debian-6.12", Place::FirstMegabyte, false},
                                         Case{"debian-6.12", Place::FirstMegabyte, true}),
                         name_of);

}  // namespace
}  // namespace ringside::live
