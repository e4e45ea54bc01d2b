#include "providers/context/vcpu_context.h"

#include <gtest/gtest.h>

#include "providers/testing/fake_guest.h"
#include "vmm/fake_vcpu_exits_for_tests.h"

namespace ringside::providers {
namespace {

using dif::ContextVariable;

constexpr ArgumentPlan kThree = facts_as_arguments(3);
constexpr std::uint64_t kPaging = std::uint64_t{1} << 31, kLongMode = 0x500;

class Vcpu : public ::testing::Test {
 protected:
  Vcpu() {
    FakeKernel::write_task(memory_);
    memory_.put64(kStack, kKernelBase + kStack + 0x20);  // saved rbp
    memory_.put64(kStack + 8, 0x1111);
    memory_.put64(kStack + 0x20, 0);
    memory_.put64(kStack + 0x28, 0x2222);
    vcpu_.state.cr0 = kPaging;
    vcpu_.state.efer = kLongMode;
    vcpu_.state.cr3 = kRoot;
    vcpu_.state.cs = 0x10;
    vcpu_.state.rip = 0x4711;
    vcpu_.state.rsp = vcpu_.state.rbp = kKernelBase + kStack;
    vcpu_.state.gs_base = kKernelBase + kPercpu1;
  }
  static std::string name(const dif::GuestContext& context) {
    char text[16];
    return std::string(text, context.execname(text).value_or(0));
  }
  static std::vector<std::uint64_t> frames(const dif::GuestContext& context, bool user) {
    std::vector<std::uint64_t> frames(8);
    frames.resize((user ? context.user_stack(frames) : context.kernel_stack(frames)).value_or(0));
    return frames;
  }

  FakeMemory memory_;
  FakeKernel kernel_;
  RunTimes run_times_;
  LinuxContext linux_{memory_.memory(), kernel_, run_times_};
  VcpuContext with_linux_{memory_.memory(), 2, LinuxVcpu{kernel_, linux_}};
  VcpuContext bare_{memory_.memory(), 2, std::nullopt};
  vmm::FakeStoppedVcpu vcpu_{1};
};

TEST_F(Vcpu, RegistersAreFetchedOnlyWhenTheyAreNeededAndThenOnce) {
  with_linux_.begin(vcpu_, kThree, {1, 2, 3, 4});
  EXPECT_EQ(with_linux_.argument(0), 1u);
  EXPECT_EQ(with_linux_.argument(2), 3u);
  EXPECT_EQ(with_linux_.argument(3), 0u) << "the plan has three";
  static_cast<void>(with_linux_.kernel());
  static_cast<void>(with_linux_.user());
  EXPECT_EQ(vcpu_.fetched, 0u);

  EXPECT_EQ(with_linux_.variable(ContextVariable::Pid), 100u);
  EXPECT_EQ(name(with_linux_), "workload");
  EXPECT_EQ(load<std::uint64_t>(with_linux_.kernel(), kernel_address(kStack + 8)), 0x1111u);
  EXPECT_EQ(vcpu_.fetched, 1u);
  EXPECT_EQ(kernel_.current_reads, 1u);
}

TEST_F(Vcpu, LinuxSaysWhichCpusAreOffline) {
  constexpr std::uint64_t kMask = kStack + 0x100;
  LinuxContexts contexts{2, memory_.memory(), kernel_};
  VcpuContexts ignorant{memory_.memory(), 2, LinuxGuest{kernel_, contexts}};
  EXPECT_FALSE(ignorant.is_offline(1, vcpu_.state)) << "it has no such symbol";
  guest_linux::SymbolTable& symbols = kernel_.symbols_to_fill();
  symbols.add_module({"vmlinux", kernel_address(kStack), 0x1000, 0},
                     {{kernel_address(kMask), 0, symbols.intern("__cpu_online_mask"), 'D', 0}});
  symbols.seal();
  VcpuContexts knows{memory_.memory(), 2, LinuxGuest{kernel_, contexts}};
  Registers waits;  // at the reset vector: plugged in, and not started yet
  waits.rip = 0xfff0;

  EXPECT_FALSE(knows.is_offline(1, vcpu_.state)) << "it boots";
  EXPECT_FALSE(knows.is_offline(1, waits)) << "it boots";
  memory_.put64(kMask, 0b01);
  Registers starts = vcpu_.state;  // by page tables that do not have all of the kernel yet
  starts.cr3 = kTask;
  EXPECT_TRUE(knows.is_offline(1, starts));
  const std::uint64_t tables = 0x2000 | 1;
  memory_.put64(kRoot + 511 * 8, 0);
  EXPECT_FALSE(knows.is_offline(1, starts)) << "the mask's place may still change";
  memory_.put64(kRoot + 511 * 8, tables);
  EXPECT_TRUE(knows.is_offline(1, vcpu_.state));
  EXPECT_FALSE(knows.is_offline(0, vcpu_.state));
  EXPECT_TRUE(knows.is_offline(1, waits));
  EXPECT_TRUE(knows.is_offline(0, waits)) << "whichever CPU it is taken for";
  knows[0].begin(vcpu_, kThree, {});
  EXPECT_EQ(guest_linux::OnlineCpus(kernel_).has(knows[0].kernel(), 70), false);
  VcpuContexts bare{memory_.memory(), 2, std::nullopt};
  EXPECT_FALSE(bare.is_offline(1, waits)) << "a guest without paging is sampled, too";

  memory_.put64(kRoot + 511 * 8, 0);
  EXPECT_TRUE(knows.is_offline(1, vcpu_.state)) << "no page table is walked for each sample";
}

TEST_F(Vcpu, ArgumentsThatAreTheVcpusAreReadFromItsRegistersAndMemory) {
  constexpr ArgumentPlan kPlan =
      arguments_from({ArgumentSource::kernel_pc(), ArgumentSource::user_pc(),
                      ArgumentSource::fact(0), ArgumentSource::word(&Registers::rsp, 8)});
  for (VcpuContext* context : {&with_linux_, &bare_}) {
    context->begin(vcpu_, kPlan, {17});
    EXPECT_EQ(context->argument(0), 0x4711u);
    EXPECT_EQ(context->argument(1), 0u);
    EXPECT_EQ(context->argument(2), 17u);
    EXPECT_EQ(context->argument(3), 0x1111u);
  }
  vcpu_.state.cs = 0x33;
  bare_.begin(vcpu_, kPlan, {17});
  EXPECT_EQ(bare_.argument(0), 0u);
  EXPECT_EQ(bare_.argument(1), 0x4711u);
}

TEST_F(Vcpu, EachMomentIsItsOwn) {
  with_linux_.begin(vcpu_, kNoArguments, {});
  EXPECT_EQ(with_linux_.variable(ContextVariable::Tid), 101u);
  memory_.put32(kTask + 16, 102);
  with_linux_.begin(vcpu_, kNoArguments, {});

  EXPECT_EQ(with_linux_.variable(ContextVariable::Tid), 102u);
  EXPECT_EQ(vcpu_.fetched, 2u);
}

TEST_F(Vcpu, ItsCpuIsFoundByEitherGsBase) {
  Registers user;
  user.kernel_gs_base = kKernelBase + kPercpu0;
  user.gs_base = 0x7fff'0000'0000;

  EXPECT_EQ(with_linux_.locate(user, 1).cpu, 0u);
  EXPECT_EQ(with_linux_.locate(vcpu_.state, 0).cpu, 1u);
  EXPECT_EQ(with_linux_.locate({}, 1).percpu_base.raw(), kKernelBase + kPercpu1) << "by its index";
  EXPECT_EQ(bare_.locate(user, 1).cpu, 1u);
  EXPECT_EQ(bare_.locate(user, 1).percpu_base.raw(), 0u);
}

TEST_F(Vcpu, OfAnUnknownKernelHasAddressesButNoIdentity) {
  bare_.begin(vcpu_, kNoArguments, {});

  EXPECT_EQ(name(bare_), "");
  EXPECT_EQ(bare_.variable(ContextVariable::Pid), 0u);
  EXPECT_EQ(bare_.variable(ContextVariable::Curthread), 0u);
  EXPECT_EQ(bare_.machine_register(dif::RegisterSet::AtProbe, 17), 0x4711u);
  EXPECT_EQ(frames(bare_, false), (std::vector<std::uint64_t>{0x4711, 0x1111, 0x2222}));
  EXPECT_TRUE(frames(bare_, true).empty());
  EXPECT_EQ(bare_.variable(ContextVariable::Caller), 0x1111u);
  EXPECT_EQ(bare_.variable(ContextVariable::Stackdepth), 3u);
  EXPECT_EQ(load<std::uint64_t>(bare_.kernel(), kernel_address(kStack + 8)), 0x1111u);
}

TEST_F(Vcpu, InUserModeTheStackIsTheUsers) {
  vcpu_.state.cs = 0x33;
  vcpu_.state.rsp = vcpu_.state.rbp = kUserBase + kStack;
  memory_.put64(kStack, kUserBase + kStack + 0x20);
  bare_.begin(vcpu_, kNoArguments, {});

  EXPECT_TRUE(frames(bare_, false).empty());
  EXPECT_EQ(frames(bare_, true), (std::vector<std::uint64_t>{0x4711, 0x1111, 0x2222}));
  EXPECT_EQ(bare_.variable(ContextVariable::Ucaller), 0x1111u);
}

TEST_F(Vcpu, BeforePagingAddressesArePhysicalAndFramesAreNotFollowed) {
  vcpu_.state.cr0 = vcpu_.state.efer = 0;
  vcpu_.state.rsp = vcpu_.state.rbp = kStack;
  bare_.begin(vcpu_, kNoArguments, {});

  EXPECT_EQ(load<std::uint64_t>(bare_.kernel(), GuestVirt(kStack + 8)), 0x1111u);
  EXPECT_FALSE(load<std::uint64_t>(bare_.kernel(), GuestVirt(kGuestBytes - 4)));
  EXPECT_EQ(frames(bare_, false), std::vector<std::uint64_t>{0x4711});
}

TEST_F(Vcpu, MemoryBehind32BitPagingIsAFault) {
  vcpu_.state.efer = 0;
  bare_.begin(vcpu_, kNoArguments, {});

  const auto read = load<std::uint64_t>(bare_.kernel(), GuestVirt(kStack));

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, FaultKind::BadAddress);
  EXPECT_EQ(read.error().address, kStack);
}

TEST_F(Vcpu, RegistersThatLieOnlyMakeFaults) {
  for (const std::uint64_t lie : {UINT64_MAX, std::uint64_t{1} << 63, kGuestBytes - 8}) {
    vcpu_.state.cr3 = vcpu_.state.rbp = vcpu_.state.cr4 = lie;
    bare_.begin(vcpu_, kNoArguments, {});
    EXPECT_FALSE(load<std::uint64_t>(bare_.kernel(), GuestVirt(lie)));
    EXPECT_EQ(frames(bare_, false).size(), 1u);
  }
}

}  // namespace
}  // namespace ringside::providers
