// The probes that stand and fire while a fake kernel boots: the test is the vCPU that hits
// breakpoints.
#include "providers/tracer/boot_tracer.h"

#include <gtest/gtest.h>

#include <memory>

#include "providers/boot/fake_file_kernel.h"
#include "vmm/fake_vcpu_exits_for_tests.h"

namespace ringside::providers {
namespace {

class HeldMachine final : public vmm::InertMachine {
 public:
  explicit HeldMachine(FakeMemory& memory) : memory_(memory) {}
  unsigned count() const override { return 2; }
  vmm::GuestMemory& memory() override { return memory_.memory(); }
  vmm::VcpuExits* exits() override { return &fake; }
  vmm::FakeVcpuExits fake;

 private:
  FakeMemory& memory_;
};

class Boot : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"x86_64_start_kernel", "early_cpu_init", "rest_init", "free_initmem",
                             "system_state", "one", "two", "three", "four", "five"}) {
      kernel_.function(name);
    }
    kernel_.seal();
    tracer_.add_providers(registry_);
  }
  GuestVirt entry(std::string_view name) const {
    return GuestVirt(kernel_.symbols().find(name)->address.raw() + FakeFileKernel::kNop);
  }
  void enable(const std::string& name) {
    std::optional<Probe> found;
    ASSERT_TRUE(registry_.for_each({"fbt", "vmlinux", name, "entry"},
                                   [&](const Probe& probe) { found = probe; }));
    ASSERT_TRUE(found) << name;
    ASSERT_TRUE(registry_.enable(*found));
  }
  void arm() {
    trace_ = tracer_.begin(sink_, clock_, {});
    for (FireGate* gate : trace_->traps().gates) gate->open();
    ASSERT_TRUE(trace_->arm());
  }
  void hit(std::string_view name, unsigned index = 0, std::uint64_t gs_base = 0) {
    vmm::FakeStoppedVcpu vcpu(index);
    vcpu.state.rip = entry(name).raw();
    vcpu.state.cr3 = kRoot;
    vcpu.state.gs_base = gs_base;
    vcpu.state.rdi = 42;
    trace_->traps().breakpoints(vcpu, entry(name));
  }
  bool stands(std::string_view name) const {
    const auto& all = machine_.fake.breakpoints;
    return std::find(all.begin(), all.end(), entry(name)) != all.end();
  }

  FakeMemory memory_;
  FakeFileKernel kernel_{memory_};
  HeldMachine machine_{memory_};
  Registry registry_;
  RecordingSink sink_;
  GuestClock clock_{TickRate(1'000'000'000)};
  BootTracer tracer_{machine_, kernel_};
  std::unique_ptr<KernelTrace> trace_;
};

TEST_F(Boot, FiresWithTheVcpusNumberUntilCpusAreKnown) {
  enable("one");
  arm();
  ASSERT_TRUE(stands("one"));

  hit("one", 1);
  ASSERT_EQ(sink_.firings.size(), 1u);
  EXPECT_EQ(sink_.firings[0].record.vcpu, 1u);
  EXPECT_EQ(sink_.firings[0].arg0, 42u);

  hit("rest_init");
  EXPECT_EQ(kernel_.learned, 1u);
  hit("one", 1, kKernelBase + kPercpu0);
  ASSERT_EQ(sink_.firings.size(), 2u);
  EXPECT_EQ(sink_.firings[1].record.vcpu, 0u) << "as the kernel numbers them";
}

TEST_F(Boot, FourPlacesAskTheKernelHowFarItIs) {
  const std::uint64_t state = kernel_.symbols().find("system_state")->address.raw() - kKernelBase;
  for (const char* name : {"one", "two", "three", "four"}) enable(name);
  arm();

  memory_.put32(state, 0);
  hit("one");
  EXPECT_FALSE(stands("free_initmem"));
  EXPECT_EQ(kernel_.learned, 0u);

  memory_.put32(state, 1);
  hit("two");
  EXPECT_TRUE(stands("one") && stands("four") && stands("free_initmem"));
  EXPECT_EQ(kernel_.learned, 1u);
  EXPECT_EQ(sink_.firings.size(), 2u);
}

TEST_F(Boot, ManyPlacesStandStepByStep) {
  kernel_.init = {{kernel_.symbols().find("five")->address,
                   GuestVirt(kernel_.symbols().find("five")->address.raw() + 64)}};
  for (const char* name : {"one", "two", "three", "four", "five"}) enable(name);
  arm();

  EXPECT_TRUE(stands("three") && !stands("four") && stands("x86_64_start_kernel"));
  const auto notices = tracer_.take_notices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].find("5 places are probed"), 0u);

  hit("x86_64_start_kernel");
  EXPECT_TRUE(stands("four") && stands("five") && stands("rest_init"));
  EXPECT_TRUE(sink_.firings.empty()) << "a marker is no probe";

  hit("rest_init");
  EXPECT_TRUE(stands("five") && stands("free_initmem"));
  hit("free_initmem");
  EXPECT_TRUE(stands("four") && !stands("five"));
}

TEST_F(Boot, OnlyAnotherKernelHasBreakpointsWhereItWasLoaded) {
  enable("one");
  arm();
  EXPECT_FALSE(machine_.fake.loaded_at) << "a Linux rewrites its text";
  trace_->disarm();

  kernel_.linux = false;
  ASSERT_TRUE(trace_->arm());

  ASSERT_TRUE(machine_.fake.loaded_at);
  EXPECT_EQ(machine_.fake.loaded_at(kernel_address(0x1234)), GuestPhys(0x1234));
}

TEST_F(Boot, TheHostsProbesReadThroughAsManyLevelsAsTheGuestHas) {
  enable("one");
  arm();
  const auto reads = [&] {
    const HostView view = trace_->traps().view;
    view.look_again();
    return load<std::uint64_t>(*view.kernel, kernel_address(kTask)).has_value();
  };

  EXPECT_TRUE(reads());
  kernel_.levels = 5;
  EXPECT_FALSE(reads()) << "the fake's tables have four";
}

TEST_F(Boot, NothingIsSetAnyMoreWhenTracingStops) {
  for (const char* name : {"one", "two", "three", "four", "five"}) enable(name);
  arm();
  for (FireGate* gate : trace_->traps().gates) gate->close();

  hit("rest_init");

  EXPECT_FALSE(stands("five")) << "the session takes the setter away meanwhile";
}

TEST_F(Boot, LeavesNoBreakpointBehind) {
  enable("one");
  arm();

  trace_->disarm();

  EXPECT_TRUE(machine_.fake.breakpoints.empty());
}

}  // namespace
}  // namespace ringside::providers
