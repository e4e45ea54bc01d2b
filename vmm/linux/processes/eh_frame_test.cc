#include "vmm/linux/processes/eh_frame.h"

#include <execinfo.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "vmm/arch/arch.h"
#include "vmm/linux/processes/eh_frame_fakes_for_tests.h"
#include "vmm/linux/processes/user_fakes_for_tests.h"

namespace ringside::guest_linux {
namespace {

using fakes::EhFrameWriter;
using fakes::RuleWriter;

constexpr std::uint64_t kUserImage = 0x7f00'0000'0000, kEhHeader = kUserImage + 0x3000;
constexpr std::uint64_t kUserStack = 0x7ffe'0000'0000;
constexpr std::uint32_t kEnoughSteps = 10000;
constexpr unsigned kRbx = 3, kRbp = 6, kRsp = 7, kPcRule = 16;

class EhFrame : public testing::Test {
 protected:
  void put(const std::vector<EhFrameWriter::Function>& functions) {
    put_bytes(EhFrameWriter::write(kEhHeader, functions));
  }
  void put_bytes(const fakes::Bytes& table) {
    std::uint64_t at = kEhHeader;
    for (const std::byte byte : table.bytes()) guest_.put(at++, byte);
  }
  Result<FrameRules, NoRules> rules(std::uint64_t pc, std::uint32_t steps = kEnoughSteps) {
    StepBudget budget(steps);
    const auto index = EhFrameIndex::read(guest_, GuestVirt(kEhHeader));
    if (!index) return tl::make_unexpected(NoRules::Unreadable);
    return find_frame_rules(guest_, *index, GuestVirt(pc), budget);
  }
  FrameStep step(std::uint64_t pc) {
    const auto found = rules(pc);
    if (!found) return FrameStep::Failed;
    StepBudget budget(kEnoughSteps);
    return step_up(*found, guest_, guest_, registers_, budget);
  }
  void put_words(std::initializer_list<std::uint64_t> words) {
    std::uint64_t at = kUserStack;
    for (const std::uint64_t word : words) {
      guest_.put(at, word);
      at += 8;
    }
    registers_[kRsp] = kUserStack;
  }

  fakes::PagedGuest guest_;
  FrameRegisters registers_{};
};

TEST_F(EhFrame, AFrameIsWhatTheRulesSayAtThisInstruction) {
  // push %rbx; sub $16, %rsp; ...; add $16, %rsp; pop %rbx; ret
  RuleWriter body;
  body.advance(1).def_cfa_offset(16).saved(kRbx, 16).advance(4).def_cfa_offset(32);
  put({{kUserImage + 0x1000, 0x40, body}, {kUserImage + 0x1040, 0x10, {}}});
  put_words({0x11, 0x12, 0xb, 0xca11e4});

  ASSERT_EQ(step(kUserImage + 0x1005), FrameStep::Up);
  EXPECT_EQ(registers_[kPcRule], 0xca11e4u);
  EXPECT_EQ(registers_[kRbx], 0xbu);
  EXPECT_EQ(registers_[kRsp], kUserStack + 32);
  put_words({0xca11e4});
  ASSERT_EQ(step(kUserImage + 0x1000), FrameStep::Up) << "before the first instruction";
  EXPECT_EQ(registers_[kPcRule], 0xca11e4u);
  EXPECT_EQ(registers_[kRsp], kUserStack + 8);
  put_words({0xb, 0xca11e4});
  ASSERT_EQ(step(kUserImage + 0x1004), FrameStep::Up) << "after the push";
  EXPECT_EQ(registers_[kRsp], kUserStack + 16);
}

TEST_F(EhFrame, CodeBetweenAndAroundFunctionsIsNotCovered) {
  put({{kUserImage + 0x1000, 0x40, {}},
       {kUserImage + 0x1100, 0x40, {}},
       {kUserImage + 0x1200, 1, {}}});

  for (const std::uint64_t pc : {0xfffU, 0x1040U, 0x10ffU, 0x1140U, 0x1201U}) {
    const auto found = rules(kUserImage + pc);
    ASSERT_FALSE(found) << pc;
    EXPECT_EQ(found.error(), NoRules::NotCovered) << pc;
  }
  for (const std::uint64_t pc : {0x1000U, 0x103fU, 0x1100U, 0x1200U}) {
    EXPECT_TRUE(rules(kUserImage + pc)) << pc;
  }
}

TEST_F(EhFrame, ExceptionHandlingDataOfCxxAndRustIsSkipped) {
  put({{kUserImage + 0x1000, 0x40, {}, "zPLR"}, {kUserImage + 0x1040, 0x40, {}, "zRS"}});

  ASSERT_TRUE(rules(kUserImage + 0x1000));
  EXPECT_FALSE(rules(kUserImage + 0x1000)->is_signal);
  EXPECT_TRUE(rules(kUserImage + 0x1050)->is_signal);
}

TEST_F(EhFrame, AnUndefinedReturnAddressIsTheOutermostFrame) {
  put({{kUserImage + 0x1000, 0x40, RuleWriter().byte(7).uleb(16)}});
  put_words({1, 2});

  EXPECT_EQ(step(kUserImage + 0x1010), FrameStep::Outermost);
}

TEST_F(EhFrame, RememberedRulesComeBackWithTheirFrame) {
  RuleWriter body;
  body.advance(1).def_cfa_offset(32).saved(kRbp, 32).byte(0x0a);  // remember_state
  body.advance(4).byte(0xc0 | kRbp).def_cfa(kRbp, 48).advance(4).byte(0x0b);
  put({{kUserImage + 0x1000, 0x40, body}});

  const auto inside = rules(kUserImage + 0x1006), after = rules(kUserImage + 0x1009);

  ASSERT_TRUE(inside && after);
  EXPECT_EQ(inside->registers[kRbp].kind, RegisterRule::Kind::Unchanged) << "the CIE's";
  EXPECT_EQ(inside->cfa_register, kRbp);
  EXPECT_EQ(after->registers[kRbp].value, -32);
  EXPECT_EQ(after->cfa_register, kRsp);
  EXPECT_EQ(after->cfa.value, 32);
}

TEST_F(EhFrame, StubsOfTheLinkageTableHaveTheirFrameByAnExpression) {
  // DW_CFA_def_cfa_expression of a linker's .plt: rsp + 8, and 8 more from the 11th byte on.
  const std::uint8_t bytes[] = {0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
  put({{kUserImage + 0x1000, 0x40, RuleWriter().expression(0x0f, bytes)}});

  put_words({0xca11e4, 0});
  registers_[kPcRule] = kUserImage + 0x1010;
  ASSERT_EQ(step(registers_[kPcRule]), FrameStep::Up);
  EXPECT_EQ(registers_[kPcRule], 0xca11e4u);
  put_words({5, 0xca11e4});
  registers_[kPcRule] = kUserImage + 0x101b;
  ASSERT_EQ(step(registers_[kPcRule]), FrameStep::Up);
  EXPECT_EQ(registers_[kPcRule], 0xca11e4u);
  EXPECT_EQ(registers_[kRsp], kUserStack + 16);
}

TEST_F(EhFrame, RegistersMayBeAtExpressionsAndInOthers) {
  const std::uint8_t at[] = {0x77, 16}, is[] = {0x09, 0xff, 0x22};  // breg7 16; CFA - 1
  RuleWriter body;
  body.register_expression(0x10, kRbx, at).register_expression(0x16, 12, is);
  body.byte(9).uleb(13).uleb(2).byte(0x14).uleb(14).uleb(2);  // r13 in rcx, r14 = CFA - 16
  put({{kUserImage + 0x1000, 0x40, body}});
  put_words({0xca11e4, 0, 0xbbb});
  registers_[2] = 0xccc;

  ASSERT_EQ(step(kUserImage + 0x1000), FrameStep::Up);

  EXPECT_EQ(registers_[kRbx], 0xbbbu);
  EXPECT_EQ(registers_[12], kUserStack + 8 - 1);
  EXPECT_EQ(registers_[13], 0xcccu);
  EXPECT_EQ(registers_[14], kUserStack + 8 - 16);
}

TEST_F(EhFrame, AStackThatIsNotInMemoryEndsTheStep) {
  put({{kUserImage + 0x1000, 0x40, {}}});
  registers_[kRsp] = 0x1000;

  EXPECT_EQ(step(kUserImage + 0x1000), FrameStep::Failed);
}

TEST_F(EhFrame, PagesThatAreNotInMemoryAreUnreadable) {
  std::vector<EhFrameWriter::Function> functions;
  for (std::uint64_t n = 0; n < 2000; ++n) functions.push_back({kUserImage + n * 16, 16, {}});
  put(functions);
  ASSERT_TRUE(rules(kUserImage + 0x100));

  guest_.remove_page(kEhHeader + 0x4000);  // the rules of that function
  EXPECT_EQ(rules(kUserImage + 0x100).error(), NoRules::Unreadable);
  guest_.remove_page(kEhHeader + 0x1000);
  EXPECT_EQ(rules(kUserImage + 0x100).error(), NoRules::Unreadable);
  guest_.remove_page(kEhHeader);
  EXPECT_EQ(EhFrameIndex::read(guest_, GuestVirt(kEhHeader)).error().kind, FaultKind::BadAddress);
}

TEST_F(EhFrame, AnIndexOfAnotherFormIsNone) {
  put({{kUserImage + 0x1000, 0x40, {}}});
  for (const auto& [at, value] :
       {std::pair(0, 2), {1, 0xff}, {2, 0xff}, {2, 0x1b}, {2, 1}, {3, 0x1b}, {3, 0xff}}) {
    guest_.put(kEhHeader, std::array<std::uint8_t, 4>{1, 0x1b, 3, 0x3b});
    guest_.put(kEhHeader + static_cast<std::uint64_t>(at), static_cast<std::uint8_t>(value));
    EXPECT_EQ(EhFrameIndex::read(guest_, GuestVirt(kEhHeader)).error().kind,
              FaultKind::IllegalOperation)
        << at << " " << value;
  }
}

TEST_F(EhFrame, ProgramsThatAreWrongOrTooLongAreUnreadable) {
  const std::uint8_t none[] = {0x22};  // nothing to add
  for (const RuleWriter& body :
       {RuleWriter().byte(0x3f), RuleWriter().byte(0x0b), RuleWriter().def_cfa(17, 8),
        RuleWriter().byte(9).uleb(3).uleb(40), RuleWriter().byte(0x10).uleb(3).uleb(1 << 20)}) {
    put({{kUserImage + 0x1000, 0x40, body}});
    const auto found = rules(kUserImage + 0x1000);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error(), NoRules::Unreadable);
  }
  RuleWriter many, deep;
  for (unsigned n = 0; n < 200; ++n) many.def_cfa_offset(8);
  for (unsigned n = 0; n < 9; ++n) deep.byte(0x0a);
  put({{kUserImage + 0x1000, 0x40, many}, {kUserImage + 0x1040, 0x40, deep}});
  EXPECT_TRUE(rules(kUserImage + 0x1000));
  EXPECT_EQ(rules(kUserImage + 0x1000, 100).error(), NoRules::Unreadable);
  EXPECT_EQ(rules(kUserImage + 0x1040).error(), NoRules::Unreadable);
  put({{kUserImage + 0x1000, 0x40, RuleWriter().expression(0x0f, none)}});
  put_words({1});
  EXPECT_EQ(step(kUserImage + 0x1000), FrameStep::Failed);
}

TEST_F(EhFrame, ExpressionsComputeAsDwarfSays) {
  const auto value = [&](std::initializer_list<int> bytes) {
    std::uint64_t at = kUserImage;
    for (const int byte : bytes) guest_.put(at++, static_cast<std::uint8_t>(byte));
    StepBudget budget(100);
    return evaluate({GuestVirt(kUserImage), static_cast<std::uint16_t>(bytes.size())}, guest_,
                    guest_, registers_, 7, budget);
  };
  put_words({0x1122'3344'5566'7788});
  registers_[0] = 100;

  EXPECT_EQ(value({}), 7u);
  EXPECT_EQ(value({0x0b, 0xfe, 0xff, 0x1e}), std::uint64_t(-14)) << "7 * -2";
  EXPECT_EQ(value({0x09, 0xf6, 0x1b}), 0u) << "7 / -10";
  EXPECT_EQ(value({0x34, 0x1d}), 3u) << "7 mod 4";
  EXPECT_EQ(value({0x77, 0, 0x06}), 0x1122'3344'5566'7788u);
  EXPECT_EQ(value({0x77, 0, 0x94, 2}), 0x7788u);
  EXPECT_EQ(value({0x92, 0, 0x7f}), 99u);
  EXPECT_EQ(value({0x31, 0x32, 0x17}), 2u - 1u) << "rot: 7 1 2 is 2 7 1";
  EXPECT_EQ(value({0x31, 0x16}), 7u);
  EXPECT_EQ(value({0x31, 0x14}), 7u);
  EXPECT_EQ(value({0x31, 0x15, 1}), 7u);
  EXPECT_EQ(value({0x1f, 0x19}), 7u);
  EXPECT_EQ(value({0x20, 0x34, 0x26}), UINT64_MAX) << "shra";
  EXPECT_EQ(value({0x08, 64, 0x24}), 0u);
  EXPECT_EQ(value({0x23, 0x80, 1}), 135u);
  EXPECT_EQ(value({0x28, 1, 0, 0x96, 0x35}), 5u) << "bra";
  EXPECT_EQ(value({0x2f, 1, 0, 0x13}), 7u) << "skip";
  // By zero, no memory, no register, no operand, too deep, an endless loop, out of the block.
  EXPECT_EQ(value({0x30, 0x1b}), std::nullopt);
  EXPECT_EQ(value({0x30, 0x1d}), std::nullopt);
  EXPECT_EQ(value({0x06}), std::nullopt);
  EXPECT_EQ(value({0x92, 17, 0}), std::nullopt);
  EXPECT_EQ(value({0x13}), std::nullopt);
  EXPECT_EQ(value({0x15, 9}), std::nullopt);
  EXPECT_EQ(value({0x12, 0x2f, 0xfc, 0xff}), std::nullopt);
  EXPECT_EQ(value({0x2f, 0xfd, 0xff}), std::nullopt);
  EXPECT_EQ(value({0x2f, 9, 0}), std::nullopt);
  EXPECT_EQ(value({0x2f, 0xf0, 0xff}), std::nullopt);
  EXPECT_EQ(value({0x50}), std::nullopt) << "reg0 is no value";
  EXPECT_EQ(value({0x0c, 1}), std::nullopt) << "cut off";
}

// This process itself: what GCC, GNU ld and glibc have written.

class OwnMemory final : public GuestReader {
 public:
  Result<void, Fault> read(GuestVirt at, std::span<std::byte> out) const override {
    // SAFETY: the kernel reads, and says where it could not.
    const iovec local{out.data(), out.size()},
        remote{reinterpret_cast<void*>(at.raw()), out.size()};
    const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (got == static_cast<ssize_t>(out.size())) return {};
    const auto done = static_cast<std::uint64_t>(std::max<ssize_t>(got, 0));
    return Unexpected<Fault>(Fault{FaultKind::BadAddress, 0, at.raw() + done});
  }
};

struct Lookup {
  std::uint64_t pc = 0, header = 0;
};

std::uint64_t header_of(std::uint64_t pc) {
  Lookup lookup{pc, 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Lookup*>(data);
        std::uint64_t header = 0;
        bool has_code = false;
        for (const auto& each : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
          const std::uint64_t at = info->dlpi_addr + each.p_vaddr;
          if (each.p_type == PT_GNU_EH_FRAME) header = at;
          if (each.p_type == PT_LOAD && wanted.pc - at < each.p_memsz) has_code = true;
        }
        if (has_code) wanted.header = header;
        return has_code ? 1 : 0;
      },
      &lookup);
  return lookup.header;
}

std::vector<std::uint64_t> own_stack(FrameRegisters registers) {
  const OwnMemory memory;
  std::vector<std::uint64_t> frames;
  StepBudget budget(kEnoughSteps);
  bool after_call = false;
  while (frames.size() < 100) {
    frames.push_back(registers[kPcRule]);
    const std::uint64_t pc = registers[kPcRule] - (after_call ? 1 : 0);
    const auto index = EhFrameIndex::read(memory, GuestVirt(header_of(pc)));
    if (!index) break;
    const auto rules = find_frame_rules(memory, *index, GuestVirt(pc), budget);
    if (!rules || step_up(*rules, memory, memory, registers, budget) != FrameStep::Up) break;
    after_call = !rules->is_signal;
  }
  return frames;
}

FrameRegisters registers_of(const ucontext_t& context) {
  FrameRegisters registers;
  constexpr std::array kIndices = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                   REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                   REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (std::size_t n = 0; n < registers.size(); ++n) {
    registers[n] = static_cast<std::uint64_t>(context.uc_mcontext.gregs[kIndices[n]]);
  }
  return registers;
}

struct Both {
  std::vector<std::uint64_t> ours, theirs;
};
Both both;

/// The caller's frame is the first that both see alike: this function has several call sites.
__attribute__((noinline)) void look_at_own_stack() {
  ucontext_t context;
  getcontext(&context);
  both.ours = own_stack(registers_of(context));
  std::array<void*, 100> frames{};
  const int count = backtrace(frames.data(), frames.size());
  both.theirs.clear();
  for (int n = 0; n < count; ++n) {
    both.theirs.push_back(reinterpret_cast<std::uint64_t>(frames[static_cast<std::size_t>(n)]));
  }
  // A sanitizer's own backtrace() is a frame more, before this function's.
  const bool has_caller = both.ours.size() > 1;
  const auto caller = has_caller ? std::ranges::find(both.theirs, both.ours[1]) : both.theirs.end();
  if (caller - both.theirs.begin() > 1 && caller != both.theirs.end()) {
    both.theirs.erase(both.theirs.begin(), caller - 1);
  }
}

int compare(const void* a, const void* b) {
  if (both.ours.empty()) look_at_own_stack();
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

void expect_alike() {
  ASSERT_GE(both.theirs.size(), 5u);
  ASSERT_EQ(both.ours.size(), both.theirs.size());
  for (std::size_t n = 1; n < both.ours.size(); ++n) {
    EXPECT_EQ(both.ours[n], both.theirs[n]) << n;
  }
}

TEST(OwnStack, IsWhatTheCLibraryFinds) {
  both = {};
  look_at_own_stack();

  expect_alike();
}

TEST(OwnStack, GoesThroughTheCLibrary) {
  both = {};
  std::array<int, 64> numbers{};
  for (std::size_t n = 0; n < numbers.size(); ++n) numbers[n] = static_cast<int>(n * 37 % 64);

  std::qsort(numbers.data(), numbers.size(), sizeof(int), compare);

  expect_alike();
}

TEST(OwnStack, GoesThroughSignalFrames) {
  both = {};
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { look_at_own_stack(); };
  sigaction(SIGUSR1, &action, &before);

  raise(SIGUSR1);

  sigaction(SIGUSR1, &before, nullptr);
  expect_alike();
}

}  // namespace
}  // namespace ringside::guest_linux
