#include "providers/trap_points/probed_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "providers/trap_points/trap_point_table.h"
#include "providers/trap_points/trap_points_for_tests.h"

namespace ringside::providers {
namespace {

using namespace trap_point_fakes;

TEST_F(TrapPoints, StandOnlyWhereItIsSafe) {
  const auto has = [this](std::uint64_t offset, std::string_view text) {
    const std::string why = reason(offset);
    return why.find(text) != std::string::npos ? testing::AssertionSuccess()
                                               : testing::AssertionFailure() << why;
  };
  kernel_.patched = {{at(0x101), 5, "static call"}};

  EXPECT_EQ(reason(0x005), "allowed");
  EXPECT_EQ(reason(0x00d), "allowed");
  EXPECT_TRUE(has(0x000, "ftrace"));
  EXPECT_TRUE(has(0x007, "inside an instruction"));
  EXPECT_TRUE(has(0x100, "static call")) << "it begins inside the instruction";
  EXPECT_EQ(reason(0x106), "allowed");
  EXPECT_TRUE(has(0x200, "this part of its text"));
  EXPECT_TRUE(has(0x301, "does not decode"));
  EXPECT_TRUE(has(0x300, "does not decode"));
  EXPECT_TRUE(has(0x500000, "not in the kernel's text"));
  EXPECT_TRUE(has(0x180005, "not in the kernel's text")) << "data that is listed as text";
}

TEST_F(TrapPoints, StandOnStiUnlessWhatFollowsMustNotBeApartFromIt) {
  machine_.put(0x100, code({0xfb, 0x90, 0xfb, 0xf4, 0xc3}));  // sti; nop; sti; hlt; ret

  EXPECT_EQ(reason(0x100), "allowed");
  EXPECT_EQ(reason(0x101), "allowed");
  EXPECT_NE(reason(0x102).find("interrupts stay off"), std::string::npos) << reason(0x102);
  EXPECT_NE(reason(0x103).find("wake-up"), std::string::npos) << reason(0x103);
}

TEST_F(TrapPoints, DoNotStandOnStiAtTheEndOfItsFunction) {
  FakeKernel kernel;
  kernel.name({{0x100, "ends_in_sti"}, {0x101, "next"}, {0x180, "end"}});
  machine_.put(0x100, code({0xfb, 0x90, 0xc3}));
  TrapPointTable table(machine_, shim_, kernel);

  const auto site = table.examine(at(0x100));

  ASSERT_FALSE(site);
  EXPECT_NE(site.error().message.find("interrupts stay off"), std::string::npos);
  EXPECT_TRUE(table.examine(at(0x101)));
}

TEST_F(TrapPoints, StandBeforeAndBehindTheFtraceSite) {
  machine_.put(0x000, code({0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0, 0, 0x55, 0xc3}));
  EXPECT_NE(reason(0x000).find("indirect branches must land on it"), std::string::npos);
  machine_.put(0x000, code({0x66, 0x0f, 0x1f, 0x00}));  // sealed
  table_.look_again();

  EXPECT_EQ(reason(0x000), "allowed");
  EXPECT_NE(reason(0x004).find("ftrace"), std::string::npos);
  EXPECT_NE(reason(0x008).find("ftrace"), std::string::npos) << "its last byte";
  EXPECT_EQ(reason(0x009), "allowed");
}

TEST_F(TrapPoints, StandInAFunctionOfAMebibyte) {
  FakeKernel kernel;
  kernel.name({{0x000, "f"}});  // up to the guest's table of kprobes
  machine_.put(0x000, code({0x0f, 0x1f, 0x44, 0, 0, 0x55, 0xc3}));
  TrapPointTable table(machine_, shim_, kernel);
  EXPECT_TRUE(table.examine(at(0x005)));
}

TEST_F(TrapPoints, StandOnNoLockPrefixThatTheKernelMayBringBack) {
  machine_.put(0x100, code({0x3e, 0xff, 0x00, 0x3e, 0x74, 0x00, 0xc3}));  // ds incl; jz, likely

  EXPECT_EQ(reason(0x100), "allowed") << "there is one CPU, and never another one";
  kernel_.bases = {0, 0x1000};
  EXPECT_NE(reason(0x100).find("another CPU"), std::string::npos) << reason(0x100);
  EXPECT_EQ(reason(0x103), "allowed");
}

TEST_F(TrapPoints, MayStandInNoinstrOnlyForThoseWhoKnow) {
  EXPECT_EQ(reason(0x200, Policy::AllowNoinstr), "allowed");

  EXPECT_NE(reason(0x380, Policy::AllowNoinstr), "allowed") << "other forbidden text stays so";
}

TEST_F(TrapPoints, SweepAcrossOurOwnBreakpoints) {
  ASSERT_TRUE(add(at(0x006)));
  arm();
  ASSERT_EQ(machine_.text(6), std::byte{0xcc});

  EXPECT_EQ(reason(0x00d), "allowed") << "lea's other bytes are not instructions";
  std::byte byte;
  ASSERT_TRUE(table_.original_text().read(at(6), std::span(&byte, 1)));
  EXPECT_EQ(byte, std::byte{0x48});
}

TEST_F(TrapPoints, SweepAcrossTheGuestsBreakpoints) {
  set_kprobe(0x006);  // lea: without its first byte, its others are other instructions
  table_.look_again();

  EXPECT_EQ(reason(0x00d), "allowed");
  std::array<std::byte, 3> text;
  ASSERT_TRUE(table_.original_text().read(at(5), text));
  EXPECT_EQ(text[1], std::byte{0x48});
}

TEST_F(TrapPoints, SweepAcrossTheGuestsOptimisedKprobes) {
  machine_.put(0x112, code({0x41, 0x57, 0x48, 0x31, 0xc0, 0xc3}));  // push r15; xor rax, rax; ret
  FakeKernel kernel;
  kernel.name({{0x112, "h"}, {0x180, "end"}});
  set_kprobe(0x112, 0x180000);
  TrapPointTable table(machine_, shim_, kernel);

  EXPECT_TRUE(table.examine(at(0x117)));
  EXPECT_FALSE(table.examine(at(0x112)));
  EXPECT_FALSE(table.examine(at(0x114))) << "the jump covers it";
  std::array<std::byte, 2> text;
  ASSERT_TRUE(table.original_text().read(at(0x113), text)) << "from its middle on";
  EXPECT_EQ(text[0], std::byte{0x57});
  EXPECT_EQ(text[1], std::byte{0x48});
}

TEST_F(TrapPoints, AreLookedUpInCopiesThatArmingLooksAtOnceMore) {
  const auto first_byte = [this] {
    return load<std::byte>(table_.original_text(), at(0x100)).value_or(std::byte{0xee});
  };
  table_.look_again();
  ASSERT_TRUE(add(at(0x005)));
  ASSERT_TRUE(add(at(0x106)));

  machine_.put(0x100, code({0x90}));

  EXPECT_EQ(first_byte(), std::byte{0x2e});
  arm();
  EXPECT_EQ(first_byte(), std::byte{0x90}) << "read as it is";
  EXPECT_EQ(table_.drop_changed(), std::vector{at(0x106)});
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  machine_.put(0x100, code({0x2e}));
  EXPECT_EQ(first_byte(), std::byte{0x2e});
}

TEST_F(TrapPoints, AreLookedUpInTheTextAsItIsThen) {
  table_.look_again();
  EXPECT_EQ(reason(0x00d), "allowed");
  machine_.put(0x00d, code({0x06}));

  table_.look_again();

  EXPECT_NE(reason(0x00d), "allowed");
}

/// Guest RAM that can only be copied; counts the copies.
class CountedBytes final : public vmm::CopiedBytes {
 public:
  explicit CountedBytes(vmm::GuestMemory& ram) : ram_(ram) {}
  bool read(std::span<const vmm::CopyPart> parts) const override {
    ++copies;
    if (on_copy) on_copy();
    return std::ranges::all_of(parts, [this](const vmm::CopyPart& part) {
      return ram_.read(GuestPhys(part.offset), part.out);
    });
  }
  bool write(std::uint64_t, std::span<const std::byte>) override { return false; }
  std::vector<vmm::ByteExtent> extents(vmm::ByteExtent of) const override { return {of}; }

  mutable unsigned copies = 0;
  std::function<void()> on_copy;

 private:
  vmm::GuestMemory& ram_;
};

struct NothingReplaced final : OriginalText::ReplacedText {
  bool are_there() const override { return false; }
  std::span<const std::byte> below(GuestVirt) const override { return {}; }
};

/// Text that is read by copies, which are counted.
struct CopiedText {
  CopiedText(FakeMachine& machine, FakeKernel& kernel)
      : bytes(std::make_shared<CountedBytes>(machine.memory())),
        memory(vmm::GuestMemory::by_copies({{GuestPhys(0), kRam, bytes, 0}})),
        text(memory, none, kernel) {}

  const std::shared_ptr<CountedBytes> bytes;
  const vmm::GuestMemory memory;
  const NothingReplaced none;
  ProbedText text;
};

TEST_F(TrapPoints, AreLookedUpWithFewCopiesOfMemory) {
  CopiedText copied(machine_, kernel_);
  ProbedText& text = copied.text;
  CountedBytes& bytes = *copied.bytes;
  const auto copies_of_examining = [&] {
    const unsigned before = bytes.copies;
    for (int n = 0; n < 100; ++n) {
      EXPECT_TRUE(text.examine(at(0x00d), Policy::Normal));
      EXPECT_TRUE(text.examine(at(0x106), Policy::Normal));
    }
    return bytes.copies - before;
  };

  text.look_again();
  EXPECT_LT(copies_of_examining(), 100u);
  text.drop_copies();
  EXPECT_GT(copies_of_examining(), 2000u) << "the guest's own again";
}

/// While the kernel rewrites a jump label, an int3 of its own stands there.
TEST_F(TrapPoints, AreLookedUpOnceTheGuestIsDoneWithAPlaceThatItPatches) {
  kernel_.patched = {{at(0x100), 5, "jump label"}};
  CopiedText copied(machine_, kernel_);
  ProbedText& text = copied.text;
  CountedBytes& bytes = *copied.bytes;
  for (const bool by_copies : {true, false}) {
    machine_.put(0x100, code({0xcc}));
    text.look_again();
    if (!by_copies) text.drop_copies();
    unsigned copies = 0;
    bytes.on_copy = [&] {
      if (++copies == 12) machine_.put(0x100, code({0x0f}));
    };

    const auto first = load<std::byte>(text.original(), at(0x100));

    bytes.on_copy = nullptr;
    EXPECT_EQ(first, std::byte{0x0f}) << by_copies;
    EXPECT_GE(copies, 12u);
  }
}

TEST_F(TrapPoints, AreLookedUpAtOnceBeforeAPlaceThatTheGuestPatches) {
  kernel_.patched = {{at(0x100), 5, "jump label"}};
  CopiedText copied(machine_, kernel_);
  ProbedText& text = copied.text;
  CountedBytes& bytes = *copied.bytes;
  text.look_again();
  text.drop_copies();
  std::array<std::byte, 5> out;
  out.fill(arch::kBreakpoint);
  ASSERT_TRUE(text.original().read(at(0x0fb), std::span(out).first(4)));
  const unsigned before = bytes.copies;

  ASSERT_TRUE(text.original().read(at(0x0fc), std::span(out).first(4)));

  EXPECT_LT(bytes.copies - before, 12u) << "as many as one look takes";
}

TEST_F(TrapPoints, StandOnNoKprobeNorRightBehindOne) {
  set_kprobe(0x005);
  table_.look_again();

  EXPECT_NE(reason(0x005).find("a kprobe of the guest's own"), std::string::npos);
  EXPECT_NE(reason(0x006), "allowed") << "the kprobe may become a jump of five bytes";
  EXPECT_EQ(reason(0x00d), "allowed");
}

TEST_F(TrapPoints, AreRefusedWhereABreakpointIsNobodys) {
  machine_.put(0x006, code({0xcc}));

  EXPECT_NE(reason(0x00d).find("an int3 stands at"), std::string::npos);
}

TEST_F(TrapPoints, AreRefusedWhileTheKprobesAreUnknown) {
  write(kKprobeTable, std::uint64_t{0x1000});
  table_.look_again();
  EXPECT_NE(reason(0x005).find("list of kprobes"), std::string::npos);

  forget_kprobe();
  table_.look_again();
  EXPECT_EQ(reason(0x005), "allowed");
}

TEST_F(TrapPoints, AreExaminedBesideTheKprobesThatAreThereThen) {
  set_kprobe(0x006);
  TrapPointTable table(machine_, shim_, kernel_);
  machine_.put(0x006, code({0x48}));
  forget_kprobe();

  EXPECT_TRUE(table.examine(at(0x006))) << "what is done first of all takes long";
}

TEST_F(TrapPoints, AreAnotherGenerationOnceTheKprobesAreOthers) {
  table_.look_again();
  const auto before = table_.generation();
  table_.look_again();
  EXPECT_EQ(table_.generation(), before);

  set_kprobe(0x006);
  table_.look_again();

  EXPECT_NE(table_.generation(), before);
}

TEST_F(TrapPoints, StandBehindAnFtraceSiteThatIsBeingRewritten) {
  machine_.put(0x000, code({0xcc}));

  EXPECT_EQ(reason(0x005), "allowed");
  EXPECT_EQ(reason(0x00d), "allowed");
  EXPECT_NE(reason(0x000).find("ftrace"), std::string::npos);
}

TEST_F(TrapPoints, KnowWhetherTheGuestIsChangingItsText) {
  auto paused = pause();
  EXPECT_FALSE(table_.is_text_changing(paused));

  write(kTextMutex + guest_linux::fakes::kOwnerAt, std::uint64_t{0xffff'8880'0001'0000});

  EXPECT_TRUE(table_.is_text_changing(paused));
}

TEST_F(TrapPoints, TellTheShimBeforeTheirInstructionWhereTheGuestLeaves) {
  KexecKernel kernel(machine_);
  TrapPointTable table(machine_, shim_, kernel);
  ASSERT_TRUE(table.kexec_site());
  ASSERT_EQ(*table.kexec_site(), at(0x145)) << "after its ftrace site";
  for (const GuestVirt place : {at(0x145), at(0x005)}) {
    const auto site = table.examine(place);
    ASSERT_TRUE(site) << site.error().message;
    ASSERT_TRUE(table.add(*site));
  }

  const GuestVirt slot = shim_.known.at(at(0x145));
  const auto& code = shim_.slots.at(slot);

  constexpr std::size_t kNotice = vmm::TrapTable::kKexecNoticeBytes;
  ASSERT_EQ(code.size(), kNotice + 7 + 5) << "what the shim says, lea, jmp rel32";
  EXPECT_EQ(code[kNotice - 1], static_cast<std::byte>(slot.raw())) << "for where it stands";
  EXPECT_EQ(code[kNotice], std::byte{0x48});
  std::int32_t displacement;
  std::memcpy(&displacement, code.data() + kNotice + 3, sizeof displacement);
  EXPECT_EQ(slot.raw() + kNotice + 7 + static_cast<std::uint64_t>(displacement), at(0x14c).raw())
      << "the instruction is displaced to where it is, after that";
  EXPECT_EQ(table.slots()[0].begin.raw(), slot.raw() + kNotice);
  EXPECT_EQ(shim_.slots.at(shim_.known.at(at(0x005))).size(), 6u) << "the others as ever";
}

TEST_F(TrapPoints, KnowNoFarewellOfAKernelThatCannotStartAnother) {
  ASSERT_TRUE(table_.kexec_site());
  EXPECT_FALSE(*table_.kexec_site());
}

}  // namespace
}  // namespace ringside::providers
