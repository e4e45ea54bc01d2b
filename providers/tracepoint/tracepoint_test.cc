#include "providers/tracepoint/tracepoint.h"

#include <gtest/gtest.h>

#include <array>

#include "providers/tracepoint/tracepoints_for_tests.h"

namespace ringside::providers {
namespace {

using namespace tracepoint_fakes;

TEST_F(Tracepoints, StandOnlyWhereItIsSafe) {
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

TEST_F(Tracepoints, StandOnStiUnlessWhatFollowsMustNotBeApartFromIt) {
  machine_.put(0x100, code({0xfb, 0x90, 0xfb, 0xf4, 0xc3}));  // sti; nop; sti; hlt; ret

  EXPECT_EQ(reason(0x100), "allowed");
  EXPECT_EQ(reason(0x101), "allowed");
  EXPECT_NE(reason(0x102).find("interrupts stay off"), std::string::npos) << reason(0x102);
  EXPECT_NE(reason(0x103).find("wake-up"), std::string::npos) << reason(0x103);
}

TEST_F(Tracepoints, StandOnNoLockPrefixThatTheKernelMayBringBack) {
  machine_.put(0x100, code({0x3e, 0xff, 0x00, 0x3e, 0x74, 0x00, 0xc3}));  // ds incl; jz, likely

  EXPECT_EQ(reason(0x100), "allowed") << "there is one CPU, and never another one";
  kernel_.bases = {0, 0x1000};
  EXPECT_NE(reason(0x100).find("another CPU"), std::string::npos) << reason(0x100);
  EXPECT_EQ(reason(0x103), "allowed");
}

TEST_F(Tracepoints, MayStandInNoinstrOnlyForThoseWhoKnow) {
  EXPECT_EQ(reason(0x200, Policy::AllowNoinstr), "allowed");

  EXPECT_NE(reason(0x380, Policy::AllowNoinstr), "allowed") << "other forbidden text stays so";
}

TEST_F(Tracepoints, PrepareTheSlotAndLeaveTheTextAlone) {
  const auto id = add(at(0x005));
  const auto again = add(at(0x005));

  ASSERT_TRUE(id && again);
  EXPECT_EQ(*id, *again);
  EXPECT_EQ(table_.size(), 1u);
  EXPECT_EQ(machine_.text(5), std::byte{0x55});
  const auto& slot = shim_.slots.at(shim_.known.at(at(0x005)));
  ASSERT_EQ(slot.size(), 6u) << "push rbp, jmp rel32";
  EXPECT_EQ(slot[0], std::byte{0x55});
  EXPECT_EQ(slot[1], std::byte{0xe9});
  EXPECT_EQ(shim_.replaced.at(shim_.known.at(at(0x005))), std::byte{0x55}) << "for a next tracer";
  EXPECT_TRUE(shim_.entries.empty()) << "an int3 there is the guest's own";
  EXPECT_FALSE(table_.is_armed(*id));
}

TEST_F(Tracepoints, ArmAllInOneWriteAndRestoreThemInOne) {
  const auto first = add(at(0x005));
  const auto second = add(at(0x106));
  ASSERT_TRUE(first && second);

  arm();
  EXPECT_EQ(machine_.write_calls, std::vector<std::size_t>{2});
  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0x106), std::byte{0xcc});
  EXPECT_TRUE(table_.is_armed(*second));

  auto paused = pause();
  ASSERT_TRUE(table_.disarm(paused));
  EXPECT_EQ(machine_.text(0x005), std::byte{0x55});
  EXPECT_EQ(machine_.text(0x106), std::byte{0xc3});
  EXPECT_TRUE(shim_.entries.contains(at(0x106))) << "for a late trap";
  EXPECT_FALSE(table_.is_armed(*second));
  EXPECT_EQ(machine_.write_calls, (std::vector<std::size_t>{2, 2}));
}

TEST_F(Tracepoints, SweepAcrossOurOwnBreakpoints) {
  ASSERT_TRUE(add(at(0x006)));
  arm();
  ASSERT_EQ(machine_.text(6), std::byte{0xcc});

  EXPECT_EQ(reason(0x00d), "allowed") << "lea's other bytes are not instructions";
  std::byte byte;
  ASSERT_TRUE(table_.original_text().read(at(6), std::span(&byte, 1)));
  EXPECT_EQ(byte, std::byte{0x48});
}

TEST_F(Tracepoints, SweepAcrossTheGuestsBreakpoints) {
  set_kprobe(0x006);  // lea: without its first byte, its others are other instructions
  table_.look_again();

  EXPECT_EQ(reason(0x00d), "allowed");
  std::array<std::byte, 3> text;
  ASSERT_TRUE(table_.original_text().read(at(5), text));
  EXPECT_EQ(text[1], std::byte{0x48});
}

TEST_F(Tracepoints, SweepAcrossTheGuestsOptimisedKprobes) {
  machine_.put(0x112, code({0x41, 0x57, 0x48, 0x31, 0xc0, 0xc3}));  // push r15; xor rax, rax; ret
  FakeKernel kernel;
  kernel.name({{0x112, "h"}, {0x180, "end"}});
  set_kprobe(0x112, 0x180000);
  TracepointTable table(machine_, shim_, kernel);

  EXPECT_TRUE(table.examine(at(0x117)));
  EXPECT_FALSE(table.examine(at(0x112)));
  EXPECT_FALSE(table.examine(at(0x114))) << "the jump covers it";
  std::array<std::byte, 2> text;
  ASSERT_TRUE(table.original_text().read(at(0x113), text)) << "from its middle on";
  EXPECT_EQ(text[0], std::byte{0x57});
  EXPECT_EQ(text[1], std::byte{0x48});
}

TEST_F(Tracepoints, StandOnNoKprobeNorRightBehindOne) {
  set_kprobe(0x005);
  table_.look_again();

  EXPECT_NE(reason(0x005).find("a kprobe of the guest's own"), std::string::npos);
  EXPECT_NE(reason(0x006), "allowed") << "the kprobe may become a jump of five bytes";
  EXPECT_EQ(reason(0x00d), "allowed");
}

TEST_F(Tracepoints, AreRefusedWhereABreakpointIsNobodys) {
  machine_.put(0x006, code({0xcc}));

  EXPECT_NE(reason(0x00d).find("an int3 stands at"), std::string::npos);
}

TEST_F(Tracepoints, AreRefusedWhileTheKprobesAreUnknown) {
  write(kKprobeTable, std::uint64_t{0x1000});
  table_.look_again();
  EXPECT_NE(reason(0x005).find("list of kprobes"), std::string::npos);

  forget_kprobe();
  table_.look_again();
  EXPECT_EQ(reason(0x005), "allowed");
}

TEST_F(Tracepoints, AreExaminedBesideTheKprobesThatAreThereThen) {
  set_kprobe(0x006);
  TracepointTable table(machine_, shim_, kernel_);
  machine_.put(0x006, code({0x48}));
  forget_kprobe();

  EXPECT_TRUE(table.examine(at(0x006))) << "what is done first of all takes long";
}

TEST_F(Tracepoints, AreAnotherGenerationOnceTheKprobesAreOthers) {
  table_.look_again();
  const auto before = table_.generation();
  table_.look_again();
  EXPECT_EQ(table_.generation(), before);

  set_kprobe(0x006);
  table_.look_again();

  EXPECT_NE(table_.generation(), before);
}

TEST_F(Tracepoints, AreNotArmedWhereAKprobeHasComeMeanwhile) {
  ASSERT_TRUE(add(at(0x006)) && add(at(0x00d)));
  set_kprobe(0x006);

  arm();

  EXPECT_EQ(table_.drop_changed(), std::vector{at(6)});
  EXPECT_EQ(machine_.text(0x00d), std::byte{0xcc}) << "elsewhere in the function";
}

TEST_F(Tracepoints, HaveNotChangedInAMachineThatEnds) {
  const auto probe = add(at(0x006));
  ASSERT_TRUE(probe);
  arm();

  machine_.unmap_text();
  shim_.now = vmm::ShimState::Overwritten;

  EXPECT_TRUE(table_.drop_changed().empty());
  EXPECT_TRUE(table_.is_armed(*probe));

  shim_.now = vmm::ShimState::There;
  EXPECT_EQ(table_.drop_changed(), std::vector{at(6)}) << "a module's text that is gone";
}

TEST_F(Tracepoints, AreNotArmedRightBehindAKprobeThatHasCome) {
  ASSERT_TRUE(add(at(0x006)));
  set_kprobe(0x005);

  arm();

  EXPECT_EQ(machine_.text(0x006), std::byte{0x48}) << "the kernel would keep our int3 as its own";
  EXPECT_EQ(table_.drop_changed(), std::vector{at(6)});
}

TEST_F(Tracepoints, LeaveItsHitsToAKprobeThatCameBeforeThem) {
  const auto id = add(at(0x005)), other = add(at(0x106));
  ASSERT_TRUE(id && other);
  set_kprobe(0x005);
  EXPECT_TRUE(shim_.entries.empty()) << "nothing stands yet";

  arm();

  EXPECT_FALSE(table_.is_armed(*id));
  EXPECT_FALSE(shim_.entries.contains(at(0x005)));
  EXPECT_TRUE(shim_.entries.contains(at(0x106)));
}

TEST_F(Tracepoints, StepAsideWhileTheGuestReadsTheirFunctionAndComeBack) {
  const auto in_f = add(at(0x006)), in_g = add(at(0x106));
  ASSERT_TRUE(in_f && in_g);
  arm();

  auto paused = pause();
  EXPECT_EQ(table_.step_aside(paused, at(0x00d)), true);

  EXPECT_EQ(machine_.text(0x006), std::byte{0x48});
  EXPECT_TRUE(shim_.entries.contains(at(0x006))) << "for a late trap";
  EXPECT_EQ(machine_.text(0x106), std::byte{0xcc}) << "of another function";
  EXPECT_EQ(table_.step_aside(paused, at(0x00d)), false) << "there is none any more";

  EXPECT_EQ(table_.step_back(paused), true);

  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc});
  EXPECT_TRUE(table_.is_armed(*in_f));
  EXPECT_TRUE(table_.drop_changed().empty());
}

TEST_F(Tracepoints, DoNotComeBackToWhereAKprobeHasCome) {
  ASSERT_TRUE(add(at(0x005)) && add(at(0x006)) && add(at(0x00d)));
  arm();
  auto paused = pause();
  ASSERT_EQ(table_.step_aside(paused, at(0x006)), true);
  set_kprobe(0x006);

  EXPECT_EQ(table_.step_back(paused), true);

  EXPECT_EQ(machine_.text(0x005), std::byte{0xcc}) << "before it";
  EXPECT_EQ(machine_.text(0x00d), std::byte{0xcc}) << "behind what it may rewrite";
  EXPECT_EQ(table_.drop_changed(), std::vector{at(0x006)});
  EXPECT_FALSE(shim_.entries.contains(at(0x006))) << "that int3 is the guest's";
  ASSERT_TRUE(table_.disarm(paused));
  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc});
}

TEST_F(Tracepoints, ComeBackWhenTheGuestIsDoneWithItsText) {
  ASSERT_TRUE(add(at(0x006)));
  arm();
  auto paused = pause();
  ASSERT_EQ(table_.step_aside(paused, at(0x000)), true);
  write(kTextMutex + guest_linux::fakes::kOwnerAt, std::uint64_t{0xffff888000001000});

  EXPECT_EQ(table_.step_back(paused), false);
  EXPECT_EQ(machine_.text(0x006), std::byte{0x48});

  write(kTextMutex + guest_linux::fakes::kOwnerAt, std::uint64_t{0});
  EXPECT_EQ(table_.step_back(paused), true);
  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc});
}

TEST_F(Tracepoints, WhereAModuleIsLoadedNothingOfTheFormerOneIsLeft) {
  const auto armed = add(at(0x006)), prepared = add(at(0x00d)), elsewhere = add(at(0x106));
  ASSERT_TRUE(armed && prepared && elsewhere);
  arm();
  const std::size_t writes = machine_.write_calls.size();
  // The same bytes but for ours, and a breakpoint of the module's own.
  machine_.put(0x006, code({0x48}));
  machine_.put(0x00d, code({0xcc}));

  table_.drop_in({at(0), at(0x100)});

  EXPECT_EQ(machine_.write_calls.size(), writes) << "nothing there is ours to write";
  EXPECT_FALSE(table_.is_armed(*armed));
  EXPECT_FALSE(shim_.entries.contains(at(0x006)));
  EXPECT_FALSE(shim_.entries.contains(at(0x00d)));
  EXPECT_TRUE(table_.is_armed(*elsewhere));
  EXPECT_EQ(table_.drop_changed(), (std::vector{at(0x006), at(0x00d)})) << "told once";
  EXPECT_TRUE(table_.is_dropped(at(0x006)));

  const auto again = add(at(0x006));
  ASSERT_TRUE(again) << "a new beginning";
  EXPECT_TRUE(*again == *armed);
  arm();
  EXPECT_EQ(machine_.text(0x006), std::byte{0xcc});
  EXPECT_TRUE(shim_.entries.contains(at(0x006))) << "the shim knows it again";
  EXPECT_TRUE(table_.drop_changed().empty());
}

TEST_F(Tracepoints, ThatSteppedAsideStayAwayOnceTracingHasEnded) {
  ASSERT_TRUE(add(at(0x006)));
  arm();
  auto paused = pause();
  ASSERT_EQ(table_.step_aside(paused, at(0x006)), true);
  ASSERT_TRUE(table_.disarm(paused));

  EXPECT_EQ(table_.step_back(paused), true);
  EXPECT_EQ(machine_.text(0x006), std::byte{0x48});
}

TEST_F(Tracepoints, AreArmedThoughAKprobeHasGone) {
  machine_.put(0x112, code({0x48, 0x31, 0xc0, 0x90, 0x90, 0x90, 0xc3}));
  FakeKernel kernel;
  kernel.name({{0x112, "h"}, {0x180, "end"}});
  set_kprobe(0x112);
  TracepointTable table(machine_, shim_, kernel);
  const auto id = table.examine_and_add(at(0x118));
  ASSERT_TRUE(id);
  machine_.put(0x112, code({0x48}));
  forget_kprobe();

  auto paused = pause();
  ASSERT_TRUE(table.arm(paused));

  EXPECT_TRUE(table.is_armed(*id));
}

TEST_F(Tracepoints, AreNotArmedInAFunctionThatIsAnother) {
  const auto id = add(at(0x00d));
  ASSERT_TRUE(id);
  machine_.put(0x005, code({0x53}));  // push rbx: the ret after it is what it was

  arm();

  EXPECT_FALSE(table_.is_armed(*id));
  EXPECT_EQ(machine_.text(0x00d), std::byte{0xc3});
}

TEST_F(Tracepoints, AreArmedThoughTheGuestHasPatchedItsOwnPlaces) {
  machine_.put(0x112, code({0x0f, 0x1f, 0x44, 0, 0, 0x66, 0x90, 0x55, 0xc3}));
  FakeKernel kernel;
  kernel.name({{0x112, "h"}, {0x180, "end"}});
  kernel.patched = {{at(0x117), 2, "jump label"}};
  TracepointTable table(machine_, shim_, kernel);
  const auto id = table.examine_and_add(at(0x119));
  ASSERT_TRUE(id);
  machine_.put(0x112, code({0xe8, 1, 2, 3, 4, 0xeb, 0x01}));  // ftrace on, the label too

  auto paused = pause();
  ASSERT_TRUE(table.arm(paused));

  EXPECT_TRUE(table.is_armed(*id));
}

TEST_F(Tracepoints, StandBehindAnFtraceSiteThatIsBeingRewritten) {
  machine_.put(0x000, code({0xcc}));

  EXPECT_EQ(reason(0x005), "allowed");
  EXPECT_EQ(reason(0x00d), "allowed");
  EXPECT_NE(reason(0x000).find("ftrace"), std::string::npos);
}

TEST_F(Tracepoints, KnowWhetherTheGuestIsChangingItsText) {
  auto paused = pause();
  EXPECT_FALSE(table_.is_text_changing(paused));

  write(kTextMutex + guest_linux::fakes::kOwnerAt, std::uint64_t{0xffff'8880'0001'0000});

  EXPECT_TRUE(table_.is_text_changing(paused));
}

TEST_F(Tracepoints, AreDroppedOnceWhenTheGuestChangesTheirText) {
  const auto id = add(at(0x005));
  ASSERT_TRUE(id && add(at(0x00d)));
  arm();
  EXPECT_TRUE(table_.drop_changed().empty());

  machine_.put(5, code({0x90}));
  EXPECT_EQ(table_.drop_changed(), std::vector{at(5)});
  EXPECT_TRUE(table_.drop_changed().empty());
  EXPECT_FALSE(table_.is_armed(*id));
  EXPECT_TRUE(table_.is_dropped(at(5)));

  auto paused = pause();
  ASSERT_TRUE(table_.disarm(paused));
  EXPECT_EQ(machine_.text(5), std::byte{0x90}) << "the guest's byte is not ours to restore";
}

TEST_F(Tracepoints, AreDroppedWhenTheirTextIsUnmapped) {
  ASSERT_TRUE(add(at(0x005)));
  arm();

  machine_.unmap_text();

  EXPECT_EQ(table_.drop_changed(), std::vector{at(5)});
}

TEST_F(Tracepoints, AreNotArmedOverTextThatChangedMeanwhile) {
  const auto id = add(at(0x005));
  ASSERT_TRUE(id);
  machine_.put(5, code({0x90}));

  arm();

  EXPECT_FALSE(table_.is_armed(*id));
  EXPECT_EQ(machine_.text(5), std::byte{0x90});
  EXPECT_EQ(table_.drop_changed(), std::vector{at(5)});
}

TEST_F(Tracepoints, AreNotArmedWhenAnyByteOfTheirInstructionChanged) {
  const auto id = add(at(0x006));  // lea: the slot holds a copy of all its bytes
  ASSERT_TRUE(id);
  machine_.put(0x008, code({0x0d}));

  arm();

  EXPECT_FALSE(table_.is_armed(*id));
  EXPECT_EQ(machine_.text(6), std::byte{0x48});
}

TEST_F(Tracepoints, LeaveTheShimsTableWhenTheyAreDropped) {
  ASSERT_TRUE(add(at(0x005)) && add(at(0x00d)) && add(at(0x106)));
  machine_.put(0x106, code({0x90}));
  arm();
  machine_.put(5, code({0x90}));

  table_.drop_changed();

  EXPECT_FALSE(shim_.entries.contains(at(0x005))) << "an int3 there is the guest's own";
  EXPECT_FALSE(shim_.entries.contains(at(0x106)));
  EXPECT_TRUE(shim_.entries.contains(at(0x00d)));
}

TEST_F(Tracepoints, AreRestoredAfterArmingFailedHalfWay) {
  ASSERT_TRUE(add(at(0x005)) && add(at(0x00d)));
  machine_.refused = at(0x00d);
  auto paused = pause();
  ASSERT_FALSE(table_.arm(paused));
  ASSERT_EQ(machine_.text(5), std::byte{0xcc});
  EXPECT_TRUE(table_.any_armed());
  machine_.refused.reset();

  ASSERT_TRUE(table_.disarm(paused));

  EXPECT_EQ(machine_.text(5), std::byte{0x55});
  EXPECT_FALSE(table_.any_armed());
}

TEST_F(Tracepoints, StayArmedWhereTheirByteCannotBeRestored) {
  const auto first = add(at(0x005));
  const auto second = add(at(0x00d));
  ASSERT_TRUE(first && second);
  arm();
  machine_.refused = at(0x00d);
  auto paused = pause();

  EXPECT_FALSE(table_.disarm(paused));

  EXPECT_FALSE(table_.is_armed(*first));
  EXPECT_TRUE(table_.is_armed(*second));
  EXPECT_TRUE(table_.any_armed()) << "the shim must stay";
}

TEST_F(Tracepoints, AreNotArmedByAMachineThatOnlySaysSo) {
  ASSERT_TRUE(add(at(0x005)));
  machine_.lies = true;
  auto paused = pause();

  const auto armed = table_.arm(paused);

  ASSERT_FALSE(armed);
  EXPECT_NE(armed.error().message.find("there is none"), std::string::npos);
  ASSERT_TRUE(table_.disarm(paused));
  EXPECT_FALSE(table_.any_armed());
}

TEST_F(Tracepoints, StayArmedWhereAMachineOnlySaysThatTheyAreRestored) {
  ASSERT_TRUE(add(at(0x005)));
  arm();
  machine_.lies = true;
  auto paused = pause();

  EXPECT_FALSE(table_.disarm(paused));

  EXPECT_TRUE(table_.any_armed()) << "the shim must stay";
}

TEST_F(Tracepoints, AreNotWrittenIntoAnotherKernel) {
  ASSERT_TRUE(add(at(0x005)) && add(at(0x00d)));
  shim_.mapped = false;
  auto paused = pause();
  EXPECT_FALSE(table_.arm(paused));
  shim_.mapped = true;
  ASSERT_TRUE(table_.arm(paused));
  shim_.mapped = false;
  machine_.write_calls.clear();

  EXPECT_FALSE(table_.disarm(paused));

  EXPECT_TRUE(machine_.write_calls.empty());
  EXPECT_TRUE(table_.any_armed());
  EXPECT_TRUE(shim_.entries.contains(at(0x005)));
}

/// A kernel with machine_kexec: ftrace nop, lea rax [rip], ret.
struct KexecKernel : FakeKernel {
  KexecKernel() { name({{0x000, "f"}, {0x140, "machine_kexec"}, {0x200, "end"}}); }
};

TEST_F(Tracepoints, TellTheShimBeforeTheirInstructionWhereTheGuestLeaves) {
  machine_.put(0x140, code({0x0f, 0x1f, 0x44, 0, 0, 0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xc3}));
  KexecKernel kernel;
  TracepointTable table(machine_, shim_, kernel);
  ASSERT_TRUE(table.kexec_site());
  ASSERT_EQ(*table.kexec_site(), at(0x145)) << "after its ftrace site";
  for (const GuestVirt place : {at(0x005), at(0x145)}) {
    const auto site = table.examine(place);
    ASSERT_TRUE(site) << site.error().message;
    ASSERT_TRUE(table.add(*site));
  }

  const GuestVirt slot = shim_.known.at(at(0x145));
  const auto& code = shim_.slots.at(slot);

  ASSERT_EQ(code.size(), 2u + 7 + 5) << "what the shim says, lea, jmp rel32";
  EXPECT_EQ(code[1], static_cast<std::byte>(slot.raw())) << "for where it stands";
  EXPECT_EQ(code[2], std::byte{0x48});
  std::int32_t displacement;
  std::memcpy(&displacement, code.data() + 5, sizeof displacement);
  EXPECT_EQ(slot.raw() + 9 + static_cast<std::uint64_t>(displacement), at(0x14c).raw())
      << "the instruction is displaced to where it is, after that";
  EXPECT_EQ(table.slots()[1].begin.raw(), slot.raw() + 2);
  EXPECT_EQ(shim_.slots.at(shim_.known.at(at(0x005))).size(), 6u) << "the others as ever";
}

TEST_F(Tracepoints, KnowNoFarewellOfAKernelThatCannotStartAnother) {
  ASSERT_TRUE(table_.kexec_site());
  EXPECT_FALSE(*table_.kexec_site());
}

/// A kernel that mends faults. h: ftrace nop, mov rax [rdi], mov rax [rdi], mov rax [rdi], ret.
/// The search: ftrace nop, push rbp, ret. The mending: call of the search, ret.
struct MendingKernel : FakeKernel {
  explicit MendingKernel(bool entries_tell = true) {
    name({{0x000, "f"},
          {0x100, "h"},
          {0x140, "search_exception_tables"},
          {0x160, "fixup_exception"},
          {0x180, "end"}});
    constexpr std::uint32_t kRead = 3, kLooksAtItsPlace = 20, kNotKnown = 99;
    patched = {{at(0x105), 1, "exception table", {}, {}, at(0x10e), kRead},
               {at(0x108), 1, "exception table", {}, {}, at(0x10e), kLooksAtItsPlace},
               {at(0x10b), 1, "exception table", {}, {}, at(0x10e), kNotKnown}};
    if (!entries_tell) return;
    guest_linux::fakes::BtfWriter btf;
    const auto word = btf.integer("int", 4, true);
    btf.structure("exception_table_entry", 12, {{"data", word, 64}});
    CHECK(guest_linux::Btf::read(btf.blob(), nullptr, types_).has_value());
  }
  static GuestVirt at(std::uint64_t offset) { return GuestVirt(kText.raw() + offset); }
};

class MendedFaults : public Tracepoints {
 protected:
  MendedFaults() {
    machine_.put(0x100, code({0x0f, 0x1f, 0x44, 0, 0, 0x48, 0x8b, 0x07, 0x48, 0x8b, 0x07, 0x48,
                              0x8b, 0x07, 0xc3}));
    machine_.put(0x140, code({0x0f, 0x1f, 0x44, 0, 0, 0x55, 0xc3}));
    machine_.put(0x160, code({0xe8, 0xdb, 0xff, 0xff, 0xff, 0xc3}));
    mended_.emplace(machine_, shim_, mending_);
  }
  std::string reason_of(std::uint64_t offset) {
    const auto site = mended_->examine(at(offset));
    return site ? "allowed" : site.error().message;
  }
  void arm_all() {
    auto paused = pause();
    ASSERT_TRUE(mended_->arm(paused));
  }

  MendingKernel mending_;
  std::optional<TracepointTable> mended_;
};

TEST_F(MendedFaults, AreSearchedByTheInstructionsOwnPlace) {
  ASSERT_TRUE(mended_->examine_and_add(at(0x105)));
  arm_all();

  EXPECT_EQ(machine_.text(0x105), std::byte{0xcc});
  EXPECT_EQ(machine_.text(0x145), std::byte{0xcc}) << "after the ftrace site of the search";
  const GuestVirt slot = shim_.entries.at(at(0x105));
  EXPECT_EQ(shim_.faults, (std::map<GuestVirt, GuestVirt>{{slot, at(0x105)}}));
  const GuestVirt search = shim_.entries.at(at(0x145));
  EXPECT_EQ(shim_.searching, std::vector{search});
  EXPECT_EQ(shim_.slots.at(search)[vmm::Shim::kFaultSearchBytes], std::byte{0x55});
}

TEST_F(MendedFaults, AreSearchedWhileSomebodyMayBeInASlot) {
  ASSERT_TRUE(mended_->examine_and_add(at(0x105)));
  arm_all();
  auto paused = pause();

  ASSERT_TRUE(mended_->disarm(paused));

  EXPECT_EQ(machine_.text(0x105), std::byte{0x48});
  EXPECT_TRUE(mended_->searches_faults());
  EXPECT_EQ(machine_.text(0x145), std::byte{0xcc});
  ASSERT_TRUE(mended_->disarm_fault_search(paused));
  EXPECT_FALSE(mended_->searches_faults());
  EXPECT_EQ(machine_.text(0x145), std::byte{0x55});
}

TEST_F(MendedFaults, AreSearchedWhenTheProbeWasThereBefore) {
  ASSERT_TRUE(mended_->examine_and_add(at(0x145)));
  EXPECT_FALSE(mended_->searches_faults());
  ASSERT_TRUE(mended_->examine_and_add(at(0x105)));
  mended_->release(at(0x145));
  arm_all();

  EXPECT_TRUE(mended_->searches_faults()) << "its probe is gone, and it stays";
  auto paused = pause();
  EXPECT_FALSE(*mended_->step_aside(paused, at(0x141))) << "also where a kprobe is to come";
  EXPECT_EQ(machine_.text(0x145), std::byte{0xcc});
}

TEST_F(MendedFaults, HaveNoProbeWithoutTheSearch) {
  const auto id = mended_->examine_and_add(at(0x105));
  ASSERT_TRUE(id);
  machine_.put(0x145, code({0x90}));

  arm_all();

  EXPECT_FALSE(mended_->is_armed(*id)) << "its fault would be an oops";
  EXPECT_EQ(machine_.text(0x105), std::byte{0x48});
  EXPECT_EQ(mended_->drop_changed().size(), 2u);
}

TEST_F(MendedFaults, AreRefusedWhereTheyAreNotAsInTheirPlace) {
  EXPECT_EQ(reason_of(0x105), "allowed");
  EXPECT_NE(reason_of(0x108).find("own place"), std::string::npos) << reason_of(0x108);
  EXPECT_NE(reason_of(0x10b).find("own place"), std::string::npos) << reason_of(0x10b);
  mending_.patched.insert(mending_.patched.begin() + 1, {at(0x106), 1, "jump label"});
  EXPECT_NE(reason_of(0x105).find("jump label"), std::string::npos) << reason_of(0x105);
}

TEST_F(MendedFaults, AreRefusedWhereTheSearchCannotBeReached) {
  set_kprobe(0x145);
  mended_->look_again();
  EXPECT_NE(reason_of(0x105).find("kprobe"), std::string::npos) << reason_of(0x105);

  MendingKernel old(false);
  TracepointTable without(machine_, shim_, old);
  EXPECT_FALSE(without.examine(at(0x105)));
  machine_.put(0x160, code({0x90, 0x90, 0x90, 0x90, 0x90, 0xc3}));
  TracepointTable inlined(machine_, shim_, mending_);
  const auto site = inlined.examine(at(0x105));
  ASSERT_FALSE(site);
  EXPECT_NE(site.error().message.find("does not call"), std::string::npos) << site.error().message;
}

TEST_F(Tracepoints, ComeAndGoOneByOneWhileTheOthersStay) {
  const auto first = add(at(0x005));
  ASSERT_TRUE(first);
  arm();
  const auto second = add(at(0x106));
  ASSERT_TRUE(second);
  const GuestVirt slot = shim_.known.at(at(0x106));
  for (unsigned n = 0; n < 3; ++n) {
    arm();
    EXPECT_TRUE(table_.is_armed(*first) && table_.is_armed(*second));

    table_.release(at(0x106));
    auto paused = pause();
    ASSERT_TRUE(table_.disarm_unused(paused));

    EXPECT_EQ(machine_.text(0x106), std::byte{0xc3});
    EXPECT_EQ(machine_.text(0x005), std::byte{0xcc});
    EXPECT_TRUE(shim_.entries.contains(at(0x106))) << "for a late trap";
    table_.park_unused();
    EXPECT_FALSE(shim_.entries.contains(at(0x106))) << "an int3 there is the guest's own";
    EXPECT_TRUE(shim_.entries.contains(at(0x005)));

    EXPECT_EQ(add(at(0x106)), *second);
    EXPECT_EQ(shim_.known.at(at(0x106)), slot) << "the same instruction, the same slot";
  }
  EXPECT_EQ(machine_.write_calls, std::vector<std::size_t>(1 + 2 * 3, 1)) << "only their own byte";
}

TEST_F(Tracepoints, StayAsLongAsTheyHaveAUser) {
  const auto id = add(at(0x005));
  ASSERT_TRUE(id && add(at(0x005)));
  arm();
  auto paused = pause();

  table_.release(at(0x005));
  ASSERT_TRUE(table_.disarm_unused(paused));
  table_.park_unused();
  EXPECT_TRUE(table_.is_armed(*id));
  EXPECT_TRUE(shim_.entries.contains(at(0x005)));

  table_.release(at(0x005));
  ASSERT_TRUE(table_.disarm_unused(paused));
  EXPECT_EQ(machine_.text(5), std::byte{0x55});
  arm();
  EXPECT_EQ(machine_.text(5), std::byte{0x55}) << "nobody wants it";
}

TEST_F(Tracepoints, BeginAnewWithASlotOfTheirOwnWhereTheGuestHasChangedTheText) {
  const auto id = add(at(0x005));
  ASSERT_TRUE(id);
  arm();
  const GuestVirt old = shim_.entries.at(at(0x005));
  machine_.put(5, code({0x53}));  // push rbx
  ASSERT_EQ(table_.drop_changed(), std::vector{at(5)});
  table_.look_again();

  ASSERT_EQ(add(at(0x005)), *id);
  arm();

  EXPECT_EQ(machine_.text(5), std::byte{0xcc});
  const GuestVirt slot = shim_.entries.at(at(0x005));
  EXPECT_NE(slot, old) << "a task may be inside that one";
  EXPECT_EQ(shim_.slots.at(old)[0], std::byte{0x55});
  EXPECT_EQ(shim_.slots.at(slot)[0], std::byte{0x53});
  auto paused = pause();
  table_.release(at(0x005));
  ASSERT_TRUE(table_.disarm_unused(paused));
  EXPECT_EQ(machine_.text(5), std::byte{0x53}) << "what the guest has made of it";
}

TEST_F(Tracepoints, AreRefusedWhereTheTextIsNotThatOfTheTracepointThatStands) {
  ASSERT_TRUE(add(at(0x006)));
  arm();
  machine_.put(0x008, code({0x0d}));  // another operand after our int3
  table_.look_again();

  EXPECT_FALSE(add(at(0x006)));
}

TEST_F(Tracepoints, AreTheGuestsOwnPlacesOnceTracingHasEndedAndTheShimStays) {
  ASSERT_TRUE(add(at(0x005)));
  arm();
  auto paused = pause();
  table_.park_restored();
  EXPECT_TRUE(shim_.entries.contains(at(0x005))) << "it stands";

  ASSERT_TRUE(table_.disarm(paused));
  table_.park_restored();

  EXPECT_FALSE(shim_.entries.contains(at(0x005))) << "though it has a user";
}

TEST_F(Tracepoints, AreWrittenAfterTheShimWasToldSo) {
  ASSERT_TRUE(add(at(0x005)));
  const unsigned before = shim_.armings;

  arm();

  EXPECT_EQ(shim_.armings, before + 1);
}

TEST_F(Tracepoints, OneThatWasNeverArmedIsParkedToo) {
  ASSERT_TRUE(add(at(0x005)));
  table_.release(at(0x005));

  table_.park_unused();

  EXPECT_FALSE(shim_.entries.contains(at(0x005)));
  EXPECT_TRUE(machine_.write_calls.empty());
}

TEST_F(Tracepoints, ReportAFullShim) {
  shim_.full = true;

  const auto id = add(at(0x005));

  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::Limit);
  EXPECT_EQ(table_.size(), 0u);
}

TEST_F(Tracepoints, ManyAreAllFoundAgain) {
  machine_.put(0x400, std::vector<std::byte>(0x8000, std::byte{0x90}));
  FakeKernel kernel;
  kernel.name({{0x400, "nops"}, {0x8400, "end"}});
  TracepointTable table(machine_, shim_, kernel);

  for (std::uint64_t i = 0; i < 0x8000; ++i) {
    const auto id = table.examine_and_add(at(0x400 + i));
    ASSERT_TRUE(id) << id.error().message;
    ASSERT_EQ(id->value, i);
  }
  auto paused = pause();
  ASSERT_TRUE(table.arm(paused));

  for (std::uint64_t i = 0; i < 0x8000; ++i) {
    ASSERT_EQ(table.examine_and_add(at(0x400 + i))->value, i);
  }
  EXPECT_TRUE(table.drop_changed().empty());
}

}  // namespace
}  // namespace ringside::providers
