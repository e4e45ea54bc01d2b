// The fixture of tests on a real /dev/kvm: boots mini guests, listens, waits. Skips where KVM
// cannot be opened. Not linked into the product.
#pragma once

#include <gtest/gtest.h>
#include <linux/kvm.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "vmm/kvm/api/kvm_system.h"
#include "vmm/kvm/testing/mini_guest.h"
#include "vmm/vcpu_exits.h"

namespace ringside::vmm::kvm {

#define CODE_OF(name) \
  std::span<const unsigned char>(name, static_cast<std::size_t>(name##_end - name))

/// Records the calls that it gets.
class RecordingSink : public ExitSink {
 public:
  void on_doorbell(StoppedVcpu&, std::uint32_t value) override {
    const std::lock_guard lock(mutex);
    doorbells.push_back(value);
  }
  void on_breakpoint(StoppedVcpu& vcpu, GuestVirt address) override {
    const std::lock_guard lock(mutex);
    hits.push_back(address.raw());
    wrong_rip += vcpu.registers().rip != address.raw();
  }
  void on_event(StoppedVcpu& vcpu, const VcpuEvent& event) override {
    const std::lock_guard lock(mutex);
    events.push_back(event);
    last_rip = vcpu.registers().rip;
    last_tsc = vcpu.guest_tsc();
  }
  void on_sample(StoppedVcpu& vcpu, std::uint64_t tag) override {
    const std::lock_guard lock(mutex);
    samples.emplace_back(tag, vcpu.registers().rip);
    sampled = tag;
  }

  void await_sample(std::uint64_t tag) const {
    while (sampled != tag) std::this_thread::yield();
  }
  std::vector<VcpuEvent> of(VcpuEvent::Kind kind) const {
    std::vector<VcpuEvent> found;
    std::copy_if(events.begin(), events.end(), std::back_inserter(found),
                 [&](const VcpuEvent& event) { return event.kind == kind; });
    return found;
  }
  std::size_t hits_at(std::uint64_t address) const {
    return static_cast<std::size_t>(std::count(hits.begin(), hits.end(), address));
  }

  std::mutex mutex;
  std::vector<std::uint32_t> doorbells;
  std::vector<std::uint64_t> hits;
  std::vector<VcpuEvent> events;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> samples;  // tag, rip
  std::atomic<std::uint64_t> sampled{0};
  std::uint64_t last_rip = 0, last_tsc = 0, wrong_rip = 0;
};

class LiveTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto system = KvmSystem::open("/dev/kvm");
    if (!system) GTEST_SKIP() << system.error().message;
    config_.warn = [this](std::string_view news) {
      const std::lock_guard lock(sink_.mutex);
      warnings_ += news;
    };
  }
  void TearDown() override { machine_.reset(); }

  void vcpus(unsigned count) { guest_.vcpus = count; }
  void hold() { config_.hold = true; }
  void terminal() { config_.terminal = true; }

  void boot(std::span<const unsigned char> code) {
    machine_.reset();
    const MiniKernel kernel(code);
    ASSERT_TRUE(kernel.ok());
    guest_.kernel = kernel.path();
    guest_.memory = 32 << 20;
    auto machine = KvmMachine::create(guest_, config_);
    ASSERT_TRUE(machine) << machine.error().message;
    machine_ = std::move(*machine);
  }
  /// With the sink from the first instruction on; false, with refusal(), when the host cannot tell
  /// one of the events.
  bool boot_with_sink(std::span<const unsigned char> code,
                      std::initializer_list<VcpuEvent::Kind> kinds = {},
                      const std::vector<GuestVirt>& breakpoints = {},
                      const VcpuExits::LoadedAt& loaded_at = {}) {
    hold();
    boot(code);
    if (!machine_) return false;
    if (!listen(kinds, breakpoints, loaded_at)) return false;
    machine_->vcpus().release();
    return true;
  }
  bool listen(std::initializer_list<VcpuEvent::Kind> kinds,
              const std::vector<GuestVirt>& breakpoints, const VcpuExits::LoadedAt& loaded_at) {
    auto paused = PausedMachine::pause(*machine_);
    if (!paused) return refuse(paused.error());
    VcpuExits::Wanted wanted;
    for (const VcpuEvent::Kind kind : kinds) wanted.kinds[static_cast<std::size_t>(kind)] = true;
    machine_->exits()->set_sink(*paused, &sink_);
    if (const auto done = machine_->exits()->want(*paused, wanted); !done) {
      return refuse(done.error());
    }
    const auto done = machine_->exits()->set_breakpoints(*paused, breakpoints, loaded_at);
    return done ? true : refuse(done.error());
  }
  bool refuse(const Error& error) {
    refusal_ = error.message;
    return false;
  }

  MachineState await_end() {
    EXPECT_TRUE(becomes_readable(machine_->status().event_fd())) << "the guest does not end";
    const MachineState state = machine_->state();
    machine_->shut_down();  // so that no vCPU is inside the sink any more
    return state;
  }
  std::uint64_t word(std::uint64_t offset) {
    std::uint64_t value = 0;
    EXPECT_TRUE(machine_->memory().read(GuestPhys(kGuestData + offset),
                                        std::as_writable_bytes(std::span(&value, 1))));
    return value;
  }
  void await_word(std::uint64_t offset) { await_more(offset, 0); }
  void await_more(std::uint64_t offset, std::uint64_t than) {
    while (word(offset) <= than && machine_->state() == MachineState::Running) {
      std::this_thread::yield();
    }
  }
  /// Where in the guest's memory those bytes of its code are.
  static std::uint64_t find(std::span<const unsigned char> code,
                            std::initializer_list<unsigned char> bytes) {
    const auto at = std::search(code.begin(), code.end(), bytes.begin(), bytes.end());
    EXPECT_NE(at, code.end());
    return kGuestCode + static_cast<std::uint64_t>(at - code.begin());
  }

  KvmMachine& machine() { return *machine_; }
  RecordingSink& sink() { return sink_; }
  const std::string& refusal() const { return refusal_; }
  std::string warnings() {
    const std::lock_guard lock(sink_.mutex);
    return warnings_;
  }

 private:
  RecordingSink sink_;
  std::string warnings_;
  GuestConfig guest_;
  KvmConfig config_;
  std::unique_ptr<KvmMachine> machine_;
  std::string refusal_;
};

}  // namespace ringside::vmm::kvm
