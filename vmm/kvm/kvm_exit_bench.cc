// Measures what an exit costs on this host's KVM, the machine's own part beside the least possible:
//   kvm_exit_bench [EXITS [ROUNDS]]
// A guest writes a port EXITS times; measured is from the first exit to the last. By turns:
// - bare: KVM_RUN in a loop that looks at the exit's reason and port, with and without KVM
//   copying the registers (KVM_CAP_SYNC_REGS);
// - ours: a port that no device answers, the doorbell of the exit channel with a sink that only
//   counts, and with one that wants the registers and the time.
// Not by Google Benchmark: the guest's loop drives, and the figures count only beside each other.
// Ends with 1 and one line where KVM does not run it.

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "vmm/base/numbers.h"
#include "vmm/kvm/api/kvm_system.h"
#include "vmm/kvm/api/kvm_vm.h"
#include "vmm/kvm/host/identity_tables.h"
#include "vmm/kvm/testing/mini_guest.h"
#include "vmm/kvm/vcpu/vcpu_state.h"
#include "vmm/vcpu_exits.h"

namespace ringside::vmm::kvm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint16_t kUnansweredPort = 0x1234;
constexpr std::uint16_t kPowerOffPort = 0x604;

// The two immediates that rounds change are at fixed places: the count at 1, the port at 7.
MINI_GUEST(guest_writes_a_port,
           "mov ecx, 0x11223344\n mov dx, 0x5566\n"
           "1: mov eax, ecx\n out dx, eax\n dec ecx\n jnz 1b\n" MINI_GUEST_POWER_OFF);

std::vector<unsigned char> code_for(std::uint16_t port, std::uint32_t count) {
  std::vector<unsigned char> code(guest_writes_a_port, guest_writes_a_port_end);
  std::memcpy(&code[1], &count, sizeof count);
  std::memcpy(&code[7], &port, sizeof port);
  return code;
}

/// Nanoseconds an exit, of exits that come one after the other.
class Stopwatch {
 public:
  void exit() {
    if (count_++ == 0) first_ = Clock::now();
  }
  void end() { last_ = Clock::now(); }
  double ns_each() const {
    return std::chrono::duration<double, std::nano>(last_ - first_).count() /
           static_cast<double>(std::max<std::uint64_t>(count_, 1));
  }
  std::uint64_t count() const { return count_; }

 private:
  Clock::time_point first_, last_;
  std::uint64_t count_ = 0;
};

class BareMemory {
 public:
  BareMemory()
      : bytes_(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  BareMemory(const BareMemory&) = delete;
  BareMemory& operator=(const BareMemory&) = delete;
  ~BareMemory() {
    if (bytes_ != MAP_FAILED) munmap(bytes_, kSize);
  }
  bool ok() const { return bytes_ != MAP_FAILED; }
  std::span<std::byte> bytes() { return {static_cast<std::byte*>(bytes_), kSize}; }

 private:
  static constexpr std::size_t kSize = 2 << 20;
  void* bytes_;
};

/// The first 2 MiB mapped one to one, and the code.
BootState lay_out(std::span<std::byte> memory, std::span<const unsigned char> code) {
  constexpr std::uint64_t kTables = 0x1000, kCode = 0x4000;
  write_identity_tables(memory, kTables);
  std::memcpy(&memory[kCode], code.data(), code.size());
  BootState boot;
  boot.entry = kCode;
  boot.cr3 = kTables;
  return boot;
}

Result<double> time_bare(std::uint32_t exits, bool with_registers) {
  BareMemory memory;
  if (!memory.ok()) return Unexpected<Error>(kvm_error("mapping memory"));
  const BootState boot = lay_out(memory.bytes(), code_for(kUnansweredPort, exits));
  const KvmSystem system = TRY(KvmSystem::open("/dev/kvm"));
  const KvmVm vm = TRY(KvmVm::create(system, KvmVm::Chips::InKernel));
  TRY(vm.set_memory(0, GuestPhys(0), memory.bytes()));
  KvmVcpu vcpu = TRY(vm.create_vcpu(system, 0));
  TRY(vcpu.set_cpuid(*TRY(system.supported_cpuid())));
  const kvm_sregs reset = TRY(vcpu.sregs());
  TRY(vcpu.set_sregs(start_sregs(reset, boot)));
  TRY(vcpu.set_regs(start_regs(boot)));
  if (with_registers) vcpu.share_registers();
  Stopwatch watch;
  const kvm_run& state = vcpu.state();
  while (vcpu.run() == 0 && state.exit_reason == KVM_EXIT_IO && state.io.port == kUnansweredPort) {
    watch.exit();
  }
  watch.end();
  if (watch.count() == exits) return watch.ns_each();
  return fail(ErrorCode::Io, fmt::format("this KVM does not run the guest (exit {} after {})",
                                         state.exit_reason, watch.count()));
}

class CountingSink : public ExitSink {
 public:
  void on_doorbell(StoppedVcpu&, std::uint32_t) override { watch.exit(); }
  void on_breakpoint(StoppedVcpu&, GuestVirt) override {}
  /// The guest's end; and, where nothing rings, its beginning.
  void on_event(StoppedVcpu&, const VcpuEvent& event) override {
    if (event.values[0] == kPowerOffPort)
      watch.end();
    else
      watch.exit();
  }

  Stopwatch watch;
};

class CuriousSink final : public CountingSink {
 public:
  void on_doorbell(StoppedVcpu& vcpu, std::uint32_t value) override {
    seen += vcpu.registers().rip + vcpu.guest_tsc();
    CountingSink::on_doorbell(vcpu, value);
  }

  std::uint64_t seen = 0;
};

Result<double> time_ours(std::uint16_t port, std::uint32_t exits, CountingSink& sink,
                         bool with_events) {
  const MiniKernel kernel(code_for(port, exits));
  GuestConfig guest;
  guest.kernel = kernel.path();
  guest.memory = 32 << 20;
  KvmConfig config;
  config.hold = true;
  const auto machine = TRY(KvmMachine::create(guest, config));
  {
    auto paused = TRY(PausedMachine::pause(*machine));
    machine->exits()->set_sink(paused, &sink);
    VcpuExits::Wanted wanted;
    wanted.kinds[static_cast<std::size_t>(VcpuEvent::Kind::PortOut)] = with_events;
    TRY(machine->exits()->want(paused, wanted));
  }
  machine->vcpus().release();
  if (!becomes_readable(machine->status().event_fd())) {
    return fail(ErrorCode::Io, "the guest does not end");
  }
  if (!with_events) sink.watch.end();
  machine->shut_down();
  if (sink.watch.count() == exits) return sink.watch.ns_each();
  return fail(ErrorCode::Io, fmt::format("{} exits, not {}: {}", sink.watch.count(), exits,
                                         machine->status().exit_report()));
}

struct Kind {
  const char* name;
  Result<double> (*measure)(std::uint32_t exits);
};

constexpr Kind kKinds[] = {
    {"bare", [](std::uint32_t exits) { return time_bare(exits, false); }},
    {"bare, registers copied", [](std::uint32_t exits) { return time_bare(exits, true); }},
    {"doorbell",
     [](std::uint32_t exits) {
       CountingSink sink;
       return time_ours(VcpuExits::kDoorbellPort, exits, sink, false);
     }},
    {"doorbell, registers and time asked for",
     [](std::uint32_t exits) {
       CuriousSink sink;
       return time_ours(VcpuExits::kDoorbellPort, exits, sink, false);
     }},
    {"port nobody answers, as events",
     [](std::uint32_t exits) {
       CountingSink sink;
       return time_ours(kUnansweredPort, exits, sink, true);
     }},
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Result<void> run(std::uint32_t exits, unsigned rounds) {
  std::vector<double> times[std::size(kKinds)];
  for (unsigned round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < std::size(kKinds); ++i) {
      times[i].push_back(TRY(kKinds[i].measure(exits)));
    }
  }
  // By the best round of each: what disturbs a round makes it longer, never shorter.
  const double bare = *std::min_element(times[0].begin(), times[0].end());
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    const auto [least, most] = std::minmax_element(times[i].begin(), times[i].end());
    fmt::print("{:40} {:9.0f} ns  (median {:.0f}, most {:.0f})  {:.2f} of bare\n", kKinds[i].name,
               *least, median(times[i]), *most, *least / bare);
  }
  return {};
}

unsigned number(const char* word, unsigned otherwise) {
  const unsigned value = parse_number<unsigned>(word).value_or(0);
  return value != 0 ? value : otherwise;
}

}  // namespace
}  // namespace ringside::vmm::kvm

int main(int argc, char** argv) {
  using namespace ringside::vmm::kvm;
  const auto done =
      run(argc > 1 ? number(argv[1], 2000) : 2000, argc > 2 ? number(argv[2], 25) : 25);
  if (done) return 0;
  fmt::print(stderr, "kvm_exit_bench: {}\n", done.error().message);
  return 1;
}
