#include "providers/trap_points/sites/functions_without_idt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "disasm/code_for_tests.h"
#include "vmm/linux/inert_kernel_for_tests.h"
#include "vmm/page_walk.h"

namespace ringside::providers {
namespace {

using disasm::code;
using guest_linux::Symbol;

constexpr std::uint64_t kTextBase = 0xffffffff81000000;
constexpr std::uint64_t kTextSize = 0x2000;
constexpr auto kNop = {0x0f, 0x1f, 0x44, 0x00, 0x00};

/// A kernel of functions 256 bytes apart, int3 where nothing was put, that is its own text.
class CodedKernel final : public guest_linux::InertKernel, public GuestReader {
 public:
  /// A function at the next place; returns its address.
  GuestVirt function(const char* name) {
    const GuestVirt at(kTextBase + functions_.size() * 0x100);
    functions_.push_back({at, 0, name, 't', 0});
    end_ = at.raw();
    return at;
  }
  CodedKernel& put(std::initializer_list<int> what) {
    for (const std::byte one : code(what)) text_[end_++ - kTextBase] = one;
    return *this;
  }
  /// An instruction of `opcode` and a rel32 that reaches `target`.
  CodedKernel& branch(std::initializer_list<int> opcode, GuestVirt target) {
    put(opcode);
    const auto distance = static_cast<std::int32_t>(target.raw() - (end_ + 4));
    std::memcpy(text_.data() + (end_ - kTextBase), &distance, sizeof distance);
    end_ += sizeof distance;
    return *this;
  }
  CodedKernel& call(GuestVirt target) { return branch({0xe8}, target); }
  CodedKernel& jump(GuestVirt target) { return branch({0xe9}, target); }
  CodedKernel& lidt() { return put({0x0f, 0x01, 0x1f}); }
  CodedKernel& ret() { return put({0xc3}); }
  GuestVirt here() const { return GuestVirt(end_); }

  /// Empty when the function may be probed.
  std::string reason(GuestVirt function) {
    if (symbols_.symbols().empty()) {
      symbols_.add_module({"vmlinux", GuestVirt(kTextBase), listed, 0}, functions_);
      symbols_.seal();
    }
    return std::string(FunctionsWithoutIdt::find(*this, *this).reason(function));
  }

  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t offset = at.raw() + i - kTextBase;
      if (offset >= text_.size()) {
        return tl::make_unexpected(Fault{FaultKind::BadAddress, 0, at.raw() + i});
      }
      out[i] = text_[offset];
    }
    return {};
  }

  std::span<const std::uint64_t> percpu_bases() const override { return percpu; }
  std::span<const AddressRange> forbidden_text() const override { return forbidden; }
  std::span<const PatchedSite> patched_sites() const override { return patched; }

  std::vector<AddressRange> forbidden;
  std::vector<PatchedSite> patched;
  std::vector<std::uint64_t> percpu{1, 2};
  std::uint64_t listed = kTextSize;  // as the kernel tells it

 private:
  std::vector<std::byte> text_ = std::vector<std::byte>(kTextSize, std::byte{0xcc});
  std::vector<Symbol> functions_;
  std::uint64_t end_ = kTextBase;
};

constexpr const char* kComesUp = "it runs before a CPU that comes up can take a breakpoint";
constexpr const char* kWakesUp = "it runs before a CPU that wakes up can take a breakpoint";
constexpr const char* kSwitches =
    "it runs where the kernel has another interrupt table, or another GS";

/// A CPU comes up as in 6.1: what it calls before load_current_idt, and after it.
class ComingUp : public testing::Test {
 protected:
  ComingUp() {
    native_load_idt_ = kernel_.function("native_load_idt");
    kernel_.lidt().ret();
    load_current_idt_ = kernel_.function("load_current_idt");
    kernel_.put(kNop).call(native_load_idt_).ret();
    before_ = kernel_.function("before");
    kernel_.put(kNop).ret();
    after_ = kernel_.function("after");
    kernel_.put(kNop).ret();
    prepare_ = kernel_.function("cpu_init_exception_handling");
    kernel_.call(before_).jump(load_current_idt_);
    start_ = kernel_.function("start_secondary");
    kernel_.call(prepare_).call(after_).put({0xf4});  // hlt
  }

  CodedKernel kernel_;
  GuestVirt native_load_idt_, load_current_idt_, before_, after_, prepare_, start_;
};

TEST_F(ComingUp, RefusesWhatRunsBeforeTheTableIsLoadedAndTheLoader) {
  for (const GuestVirt function :
       {native_load_idt_, load_current_idt_, before_, prepare_, start_}) {
    EXPECT_EQ(kernel_.reason(function), kComesUp) << std::hex << function.raw();
  }
}

TEST_F(ComingUp, AllowsWhatRunsAfterwardsAndWhatHasNothingToDoWithIt) {
  const GuestVirt other = kernel_.function("vfs_read");
  kernel_.put(kNop).call(after_).ret();

  EXPECT_EQ(kernel_.reason(after_), "");
  EXPECT_EQ(kernel_.reason(other), "");
}

TEST_F(ComingUp, FollowsBothSidesOfABranchAndThePartsThatAreKeptApart) {
  const GuestVirt taken = kernel_.function("taken");
  kernel_.ret();
  const GuestVirt cold = kernel_.function("cr4_init.cold");
  kernel_.call(taken).ret();
  const GuestVirt cr4_init = kernel_.function("cr4_init");
  kernel_.branch({0x0f, 0x84}, cold).ret();  // je
  kernel_.function("secondary_startup_64");
  kernel_.call(cr4_init).put({0xf4});

  EXPECT_EQ(kernel_.reason(taken), kComesUp);
  EXPECT_EQ(kernel_.reason(cold), kComesUp);
}

TEST_F(ComingUp, GoesOnBehindTheGuestsOwnTracingOfAFunction) {
  CodedKernel kernel;
  const GuestVirt caller = kernel.function("ftrace_caller");
  kernel.put({0x06});  // no instruction
  const GuestVirt called = kernel.function("called");
  kernel.put(kNop).ret();
  const GuestVirt traced = kernel.function("traced");
  kernel.call(caller).call(called).ret();
  kernel.function("start_secondary");
  kernel.call(traced).put({0xf4});

  EXPECT_EQ(kernel.reason(called), kComesUp);
  EXPECT_EQ(kernel.reason(caller), "");
}

TEST_F(ComingUp, TakesAJumpToAReturnThunkForAReturn) {
  CodedKernel kernel;
  const GuestVirt thunk = kernel.function("__x86_return_thunk");
  kernel.put({0x06});
  const GuestVirt behind = kernel.function("behind");
  kernel.ret();
  const GuestVirt returns = kernel.function("returns");
  kernel.jump(thunk);
  kernel.function("start_secondary");
  kernel.call(returns).call(behind).put({0xf4});

  EXPECT_EQ(kernel.reason(behind), kComesUp);
  EXPECT_EQ(kernel.reason(thunk), "");
}

/// Start-up code jumps from where it was loaded to where it is linked; to sleep and back is a path
/// of its own.
TEST_F(ComingUp, GoesOnBehindAJumpThatCannotBeFollowedWhereTheCodeBehindIsItsTarget) {
  for (const auto& [root, is_walked] :
       {std::pair("secondary_startup_64", true), std::pair("secondary_startup_64_no_verify", true),
        std::pair("common_startup_64", true), std::pair("soft_restart_cpu", true),
        std::pair("start_cpu0", false), std::pair("wakeup_long64", false),
        std::pair("restore_registers", false)}) {
    CodedKernel kernel;
    const GuestVirt behind = kernel.function("behind");
    kernel.ret();
    const GuestVirt start = kernel.function(root);
    kernel.put({0xff, 0xe0}).call(behind).put({0xf4});  // jmp rax
    kernel.function("start_secondary");
    kernel.put({0xf4});

    EXPECT_NE(kernel.reason(start), "") << root;
    EXPECT_EQ(kernel.reason(behind), is_walked ? kComesUp : "") << root;
  }
}

TEST_F(ComingUp, TakesAJumpLabelForBothOfItsSides) {
  const GuestVirt traced = kernel_.function("do_trace_write_msr");
  kernel_.put(kNop).ret();
  const GuestVirt write = kernel_.function("native_write_msr");
  const GuestVirt label = kernel_.here();
  kernel_.put(kNop).ret();
  const GuestVirt other_side = kernel_.here();
  kernel_.call(traced).ret();
  kernel_.patched = {{label, 5, "jump label", other_side}};
  kernel_.function("secondary_startup_64");
  kernel_.call(write).put({0xf4});

  EXPECT_EQ(kernel_.reason(traced), kComesUp);
}

TEST_F(ComingUp, DoesNotFollowTheEndOfTheGuest) {
  const GuestVirt print = kernel_.function("vprintk");
  kernel_.ret();
  const GuestVirt panic = kernel_.function("panic");
  kernel_.call(print).ret();
  const GuestVirt checked = kernel_.function("__ubsan_handle_out_of_bounds");
  kernel_.call(print).ret();
  const GuestVirt early = kernel_.function("early");
  kernel_.branch({0x0f, 0x84}, panic).call(checked);  // je
  kernel_.function("secondary_startup_64");
  kernel_.call(early).put({0xf4});

  EXPECT_EQ(kernel_.reason(print), "");
}

TEST_F(ComingUp, TakesItThatNobodyIsPreemptedThere) {
  const GuestVirt schedule = kernel_.function("__schedule");
  kernel_.put({0xff, 0xe0});  // jmp rax: nobody can tell where it leads
  const GuestVirt preempt = kernel_.function("preempt_schedule");
  kernel_.call(schedule).ret();
  const GuestVirt unlock = kernel_.function("unlock");
  kernel_.call(preempt).jump(preempt);
  const GuestVirt later = kernel_.function("later");
  kernel_.ret();
  // Where a branch that cannot be followed is an error.
  kernel_.function("restore_processor_state");
  kernel_.call(unlock).call(later).ret();

  EXPECT_EQ(kernel_.reason(schedule), "");
  EXPECT_EQ(kernel_.reason(preempt), kWakesUp);
  EXPECT_EQ(kernel_.reason(later), kWakesUp);
}

TEST_F(ComingUp, RefusesEverythingWhenABranchCannotBeFollowed) {
  kernel_.function("common_startup_64");
  kernel_.call(before_);
  kernel_.put({0xf4});
  const GuestVirt start = kernel_.function("early");
  kernel_.put({0xff, 0xd0}).ret();  // call *%rax
  const GuestVirt restore = kernel_.function("restore_processor_state");
  kernel_.call(start).lidt().ret();

  EXPECT_NE(kernel_.reason(after_).find("an indirect branch at vmlinux`early"), std::string::npos)
      << kernel_.reason(after_);
  EXPECT_NE(kernel_.reason(restore), "");
}

TEST_F(ComingUp, RefusesEverythingWhenABreakpointOfTheGuestHidesTheWay) {
  const GuestVirt probed = kernel_.function("restore_processor_state");
  kernel_.put({0xcc}).call(before_).lidt().ret();

  EXPECT_NE(kernel_.reason(after_).find("a breakpoint of the guest's own"), std::string::npos);
  EXPECT_NE(kernel_.reason(probed), "");
}

TEST_F(ComingUp, RefusesEverythingWhenTheStartIsNotFound) {
  CodedKernel kernel;
  kernel.function("secondary_startup_64");
  kernel.put({0xf4});
  const GuestVirt other = kernel.function("vfs_read");
  kernel.put(kNop).ret();

  EXPECT_NE(kernel.reason(other).find("it has no start_secondary"), std::string::npos);
  kernel.percpu.resize(1);
  EXPECT_EQ(kernel.reason(other), "") << "one CPU starts no other";
}

TEST_F(ComingUp, RefusesEverythingWhenTheTableIsNeverLoaded) {
  CodedKernel kernel;
  const GuestVirt forever = kernel.function("cpu_startup_entry");
  kernel.put({0x06});  // no instruction
  kernel.function("start_secondary");
  kernel.call(forever);

  EXPECT_NE(kernel.reason(forever).find("does not decode at vmlinux`cpu_startup_entry"),
            std::string::npos);
}

TEST_F(ComingUp, ReadsAnInstructionThatReachesBeyondTheTextsEnd) {
  CodedKernel kernel;
  const GuestVirt called = kernel.function("called");
  kernel.ret();
  const GuestVirt start = kernel.function("start_secondary");
  kernel.jump(called);
  kernel.listed = start.raw() + 3 - kTextBase;

  EXPECT_EQ(kernel.reason(called), kComesUp);
}

TEST_F(ComingUp, RefusesATextThatIsLargerThanAnyKernels) {
  kernel_.listed = (128 << 20) + 1;
  EXPECT_NE(kernel_.reason(after_).find("its text has 134217729 bytes"), std::string::npos)
      << kernel_.reason(after_);
}

TEST_F(ComingUp, RefusesEverythingWhenTheTextCannotBeRead) {
  kernel_.listed = kTextSize + 1;
  EXPECT_NE(kernel_.reason(after_).find("its text at 0xffffffff81002000 cannot be read"),
            std::string::npos)
      << kernel_.reason(after_);
}

TEST_F(ComingUp, RefusesEverythingWhereACpuWakesUpInAWayThatIsNotKnown) {
  CodedKernel kernel;
  kernel.function("do_suspend_lowlevel");
  kernel.ret();
  const GuestVirt other = kernel.function("vfs_read");
  kernel.put(kNop).ret();

  EXPECT_NE(kernel.reason(other).find("it has no restore_processor_state"), std::string::npos);
}

TEST_F(ComingUp, EndsOnCodeThatCallsItself) {
  const GuestVirt loop = kernel_.function("loop");
  kernel_.call(loop).call(before_).ret();
  kernel_.function("secondary_startup_64");
  kernel_.call(loop).put({0xf4});

  EXPECT_EQ(kernel_.reason(loop), kComesUp);
}

TEST_F(ComingUp, EndsOnCallsWithoutEnd) {
  CodedKernel kernel;
  GuestVirt next = kernel.function("start_secondary");
  for (int i = 0; i < 30; ++i) {
    next = GuestVirt(next.raw() + 0x100);
    kernel.call(next).call(next).ret();
    kernel.function("deeper");
  }
  kernel.ret();

  EXPECT_EQ(kernel.reason(next), kComesUp);
}

TEST(WakingUp, RefusesWhatRunsBeforeTheSavedTableIsBack) {
  CodedKernel kernel;
  const GuestVirt before = kernel.function("native_write_cr0");
  kernel.ret();
  const GuestVirt after = kernel.function("fpu__resume_cpu");
  kernel.ret();
  const GuestVirt load = kernel.function("native_load_idt");
  kernel.lidt().ret();
  const GuestVirt restore = kernel.function("restore_processor_state");
  kernel.call(before).call(load).call(after).ret();

  EXPECT_EQ(kernel.reason(before), kWakesUp);
  EXPECT_EQ(kernel.reason(restore), kWakesUp);
  EXPECT_EQ(kernel.reason(after), "");
}

TEST(Switching, RefusesTheCodeThatGivesUpTheTableAndWhatItCallsThen) {
  CodedKernel kernel;
  const GuestVirt before = kernel.function("cet_disable");
  kernel.ret();
  const GuestVirt behind = kernel.function("cc_platform_has");
  kernel.ret();
  const GuestVirt relocate = kernel.function("relocate_kernel");
  kernel.ret();
  const GuestVirt kexec = kernel.function("machine_kexec");
  kernel.call(before).lidt().call(behind).call(relocate).ret();
  const GuestVirt caller = kernel.function("kernel_kexec");
  kernel.call(kexec).ret();

  EXPECT_EQ(kernel.reason(kexec), kSwitches);
  EXPECT_EQ(kernel.reason(behind), kSwitches);
  EXPECT_EQ(kernel.reason(before), "");
  EXPECT_EQ(kernel.reason(caller), "") << "nobody comes back to it";
}

TEST(Switching, FollowsTheCallersOfCodeThatComesBackWithoutATable) {
  CodedKernel kernel;
  const GuestVirt load = kernel.function("native_load_idt");
  kernel.lidt().ret();
  const GuestVirt invalidate = kernel.function("idt_invalidate");
  kernel.put({0x90}).jump(load);
  const GuestVirt behind = kernel.function("behind");
  kernel.ret();
  const GuestVirt restart = kernel.function("native_machine_emergency_restart");
  kernel.call(invalidate).call(behind).put({0xcc});

  EXPECT_EQ(kernel.reason(load), kSwitches);
  EXPECT_EQ(kernel.reason(invalidate), kSwitches);
  EXPECT_EQ(kernel.reason(restart), kSwitches);
  EXPECT_EQ(kernel.reason(behind), kSwitches);
}

TEST(Switching, FindsACallerAtTheVeryBeginningOfTheText) {
  for (const bool by_jump : {false, true}) {
    CodedKernel kernel;
    const GuestVirt invalidate(kTextBase + 0x100), behind(kTextBase + 0x200);
    const GuestVirt caller = kernel.function("caller");
    if (by_jump) {
      kernel.jump(invalidate);
    } else {
      kernel.call(invalidate).call(behind).ret();
    }
    kernel.function("idt_invalidate");
    kernel.lidt().ret();
    kernel.function("behind");
    kernel.ret();

    EXPECT_EQ(kernel.reason(caller), kSwitches);
    EXPECT_EQ(kernel.reason(behind), by_jump ? "" : kSwitches);
  }
}

TEST(Switching, RefusesWhatLoadsGsAndWhatItCallsThen) {
  CodedKernel kernel;
  const GuestVirt pop = kernel.function("pop");
  kernel.put({0x0f, 0xa9}).ret();  // pop gs
  const GuestVirt far = kernel.function("far");
  kernel.put({0x0f, 0xb5, 0x07}).ret();  // lgs eax, [rdi]
  const GuestVirt table = kernel.function("table");
  kernel.put({0x0f, 0x01, 0x1f, 0xc3});  // lidt [rdi]
  const GuestVirt fs = kernel.function("fs");
  kernel.put({0x8e, 0xe0, 0xf3, 0x48, 0x0f, 0xae, 0xd7}).ret();  // mov fs, eax; wrfsbase rdi
  const GuestVirt store = kernel.function("store");
  kernel.put({0x0f, 0x01, 0x0f, 0x0f, 0x01, 0x17, 0x0f, 0x01, 0xdb}).ret();  // sidt, lgdt, vmsave
  const GuestVirt write = kernel.function("native_write_msr");
  kernel.ret();
  const GuestVirt load = kernel.function("load_percpu_segment");
  kernel.put({0x31, 0xc0, 0x8e, 0xe8}).call(write).ret();  // xor eax, eax; mov gs, eax
  const GuestVirt swap = kernel.function("swap");
  kernel.put({0x0f, 0x01, 0xf8}).ret();
  const GuestVirt base = kernel.function("base");
  kernel.put({0xf3, 0x48, 0x0f, 0xae, 0xdf}).ret();  // wrgsbase rdi
  const GuestVirt other = kernel.function("other");
  kernel.put({0xb8, 0x8e, 0xe8, 0, 0, 0xc3});  // mov eax, 0xe88e

  for (const GuestVirt function : {write, load, swap, base, pop, far, table}) {
    EXPECT_EQ(kernel.reason(function), kSwitches) << std::hex << function.raw();
  }
  for (const GuestVirt function : {fs, store}) EXPECT_EQ(kernel.reason(function), "");
  EXPECT_EQ(kernel.reason(other), "") << "an operand is no instruction";
}

TEST(Switching, LooksForNothingBehindCodeThatDoesNotDecode) {
  CodedKernel kernel;
  const GuestVirt odd = kernel.function("odd");
  kernel.put({0x06}).lidt().ret();
  const GuestVirt load = kernel.function("load");
  kernel.lidt().ret();

  EXPECT_EQ(kernel.reason(odd), "");
  EXPECT_EQ(kernel.reason(load), kSwitches);
}

TEST(Switching, LeavesToTheKernelWhatItMarksItself) {
  CodedKernel kernel;
  const GuestVirt entry = kernel.function("paranoid_entry");
  kernel.put({0x0f, 0x01, 0xf8}).ret();
  kernel.forbidden = {{entry, GuestVirt(entry.raw() + 0x100)}};

  EXPECT_EQ(kernel.reason(entry), "");
}

}  // namespace
}  // namespace ringside::providers
