#include "providers/tracepoint/tracepoint.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <map>

#include "disasm/code_for_tests.h"
#include "vmm/inert_machine_for_tests.h"
#include "vmm/linux/inert_kernel_for_tests.h"
#include "vmm/linux/text/kprobe_fakes_for_tests.h"

namespace ringside::providers {
namespace {

using disasm::code;
using guest_linux::Symbol;
using Policy = SitePolicy;

constexpr std::uint64_t kRam = 8 << 20;
constexpr GuestVirt kText{0xffffffff81000000};
constexpr GuestPhys kTextPhys{2 << 20}, kRoot{0x1000}, kPud{0x2000}, kPmd{0x3000};
constexpr GuestVirt kSlots{0xffffffff9f400000};

/// RAM whose page table maps 2 MiB of text; code writes go where they are meant to.
class FakeMachine final : public vmm::InertMachine {
 public:
  FakeMachine() {
    void* ram = mmap(nullptr, kRam, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ram_ = {static_cast<std::byte*>(ram), kRam};
    memory_ = vmm::GuestMemory({{GuestPhys(0), ram_}});
    put64(kRoot.raw() + 8 * 511, kPud.raw() | 3);
    put64(kPud.raw() + 8 * 510, kPmd.raw() | 3);
    put64(kPmd.raw() + 8 * 8, kTextPhys.raw() | 0x83);
  }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;
  ~FakeMachine() override { munmap(ram_.data(), ram_.size()); }

  void put64(std::uint64_t at, std::uint64_t value) {
    std::memcpy(ram_.data() + at, &value, sizeof value);
  }
  void put(std::uint64_t offset, const std::vector<std::byte>& what) {
    std::memcpy(ram_.data() + kTextPhys.raw() + offset, what.data(), what.size());
  }
  std::byte text(std::uint64_t offset) const { return ram_[kTextPhys.raw() + offset]; }
  void unmap_text() { put64(kPmd.raw() + 8 * 8, 0); }

  vmm::GuestMemory& memory() override { return memory_; }

  std::vector<std::size_t> write_calls;  // bytes of each
  std::optional<GuestVirt> refused;  // writing there fails, as QEMU does it: the others are done
  bool lies = false;                 // says that it wrote, and does not

 protected:
  Result<void> write(std::span<const vmm::CodeWrite> writes) override {
    for (const auto& write : writes) {
      const GuestVirt at(write.at.raw() - kTextPhys.raw() + kText.raw());
      if (at == refused || lies) continue;
      ram_[write.at.raw()] = std::byte{write.byte};
    }
    write_calls.push_back(writes.size());
    if (refused) return fail(ErrorCode::Invalid, "refused");
    return {};
  }

 private:
  std::span<std::byte> ram_;
  vmm::GuestMemory memory_;
};

/// Offsets of the guest's own tables.
constexpr std::uint64_t kKprobeTable = 0x100000, kTextMutex = 0x100400, kKprobes = 0x101000;

class FakeShim final : public vmm::Shim {
 public:
  Result<GuestVirt> allocate_slot(std::size_t size) override {
    if (full) return fail(ErrorCode::Limit, "full");
    const GuestVirt slot(kSlots.raw() + used_);
    used_ += size;
    return slot;
  }
  Result<void> write_slot(GuestVirt place, std::span<const std::byte> bytes) override {
    const GuestVirt slot(place.raw() + 1);
    replaced[slot] = bytes.front();
    slots[slot].assign(bytes.begin() + 1, bytes.end());
    return {};
  }
  Result<void> add_entry(GuestVirt address, GuestVirt slot) override {
    EXPECT_TRUE(slots.contains(slot)) << "slot before entry";
    entries[address] = slot;
    return {};
  }
  void remove_entry(GuestVirt address) override { entries.erase(address); }
  std::vector<std::byte> farewell(GuestVirt slot) override {
    return {std::byte{0x90}, static_cast<std::byte>(slot.raw())};
  }
  vmm::ShimState state() const override { return vmm::ShimState::There; }
  Result<void> check_mapped(vmm::PausedMachine&) const override {
    if (!mapped) return fail(ErrorCode::Invalid, "another kernel");
    return {};
  }
  void activate() override {}
  void deactivate() override {}
  Result<void> retire(vmm::PausedMachine&) override { return {}; }
  Result<void> remove(vmm::PausedMachine&) override { return {}; }
  vmm::ShimPlace place() const override { return {GuestVirt(0), 0}; }
  unsigned poll_share(vmm::TrapSink&, vmm::PollShare) override { return 0; }
  void set_doorbell(std::uint16_t) override {}
  void answer(std::uint32_t, vmm::TrapSink&) override {}
  void heartbeat() override {}
  bool quiescent() const override { return true; }
  vmm::TrapsUnderWay under_way() const override { return {}; }
  bool have_answers(const vmm::TrapsUnderWay&) const override { return true; }
  vmm::ShimCounters counters() const override { return {}; }
  bool contains(GuestVirt) const override { return false; }
  std::optional<Registers> waiting(GuestVirt) const override { return {}; }

  bool full = false;
  bool mapped = true;
  std::map<GuestVirt, std::vector<std::byte>> slots;
  std::map<GuestVirt, std::byte> replaced;  // what lies before each
  std::map<GuestVirt, GuestVirt> entries;

 private:
  std::uint64_t used_ = 0;
};

class FakeKernel : public guest_linux::InertKernel {
 public:
  FakeKernel() : InertKernel(kRoot) {}
  std::span<const AddressRange> forbidden_text() const override { return forbidden; }
  std::span<const PatchedSite> patched_sites() const override { return patched; }
  std::span<const std::uint64_t> percpu_bases() const override { return bases; }

  void name(std::vector<std::pair<std::uint64_t, const char*>> names) {
    std::vector<Symbol> all;
    for (const auto& [offset, text] : names) {
      all.push_back({GuestVirt(kText.raw() + offset), 0, text, 't', 0});
    }
    all.push_back({GuestVirt(kText.raw() + kKprobeTable), 0, "kprobe_table", 'b', 0});
    all.push_back({GuestVirt(kText.raw() + kTextMutex), 0, "text_mutex", 'D', 0});
    symbols_.add_module({"vmlinux", kText, 1 << 20, 0}, std::move(all));
    symbols_.seal();
    guest_linux::fakes::add_kprobe_types(types_);
  }

  std::vector<AddressRange> forbidden;
  std::vector<PatchedSite> patched;
  std::vector<std::uint64_t> bases;
};

struct NamedKernel : FakeKernel {
  NamedKernel() {
    name({{0x000, "f"},
          {0x100, "g"},
          {0x200, "__noinstr_text_start"},
          {0x280, "__noinstr_text_end"},
          {0x300, "garbage"},
          {0x400, "end"},
          {0x180000, "data"},  // beyond the text's end
          {0x180100, "data_end"}});
  }
};

/// f: ftrace nop, push rbp, lea rax [rip], ret. g: cs call f, ret.
class Tracepoints : public testing::Test {
 protected:
  Tracepoints() {
    machine_.put(0x000, code({0x0f, 0x1f, 0x44, 0, 0, 0x55, 0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xc3}));
    machine_.put(0x100, code({0x2e, 0xe8, 0, 0, 0, 0, 0xc3}));
    machine_.put(0x200, code({0x90, 0xc3}));
    machine_.put(0x300, code({0x06, 0x90, 0xc3}));
    machine_.put(0x180000, code({0x0f, 0x1f, 0x44, 0, 0, 0x55, 0xc3}));
    kernel_.forbidden = {{at(0x200), at(0x280)}, {at(0x380), at(0x390)}};
  }
  static GuestVirt at(std::uint64_t offset) { return GuestVirt(kText.raw() + offset); }
  vmm::PausedMachine pause() { return std::move(*vmm::PausedMachine::pause(machine_)); }
  void arm() {
    auto paused = pause();
    ASSERT_TRUE(table_.arm(paused));
  }
  /// The guest sets a kprobe: its structure, and a breakpoint or the jump to `target`.
  void set_kprobe(std::uint64_t offset, std::uint64_t target = 0) {
    guest_linux::fakes::FakeKprobe kprobe{
        .at = kText.raw() + kKprobes,
        .address = kText.raw() + offset,
        .opcode = std::to_integer<std::uint8_t>(machine_.text(offset))};
    if (target == 0) {
      machine_.put(offset, code({0xcc}));
    } else {
      kprobe.flags = guest_linux::fakes::kFlagOptimized;
      kprobe.target = kText.raw() + target;
      for (int i = 0; i < 4; ++i) {
        kprobe.copied |= std::to_integer<std::uint32_t>(machine_.text(offset + 1 + i)) << 8 * i;
      }
      const auto distance = static_cast<std::uint32_t>(target - (offset + 5));
      machine_.put(offset, code({0xe9}));
      write(offset + 1, distance);
    }
    kprobe.write([this](std::uint64_t at, auto value) { write(at - kText.raw(), value); });
    write(kKprobeTable, kprobe.node());
  }
  void forget_kprobe() { write(kKprobeTable, std::uint64_t{0}); }
  template <class T>
  void write(std::uint64_t offset, T value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    machine_.put(offset, {bytes.begin(), bytes.end()});
  }
  static Result<TracepointId> add(GuestVirt at, TracepointTable& table) {
    const ProbeSite site = TRY(table.examine(at));
    return table.add(site);
  }
  Result<TracepointId> add(GuestVirt at) { return add(at, table_); }
  std::string reason(std::uint64_t offset, Policy policy = Policy::Normal) {
    const auto allowed = table_.examine(at(offset), policy);
    if (allowed) return "allowed";
    EXPECT_EQ(allowed.error().code, ErrorCode::Unsupported);
    return allowed.error().message;
  }

  FakeMachine machine_;
  FakeShim shim_;
  NamedKernel kernel_;
  TracepointTable table_{machine_, shim_, kernel_};
};

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
  const auto& slot = shim_.slots.at(shim_.entries.at(at(0x005)));
  ASSERT_EQ(slot.size(), 6u) << "push rbp, jmp rel32";
  EXPECT_EQ(slot[0], std::byte{0x55});
  EXPECT_EQ(slot[1], std::byte{0xe9});
  EXPECT_EQ(shim_.replaced.at(shim_.entries.at(at(0x005))), std::byte{0x55}) << "for a next tracer";
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

TEST_F(Tracepoints, AreNotArmedRightBehindAKprobeThatHasCome) {
  ASSERT_TRUE(add(at(0x006)));
  set_kprobe(0x005);

  arm();

  EXPECT_EQ(machine_.text(0x006), std::byte{0x48}) << "the kernel would keep our int3 as its own";
  EXPECT_EQ(table_.drop_changed(), std::vector{at(6)});
}

TEST_F(Tracepoints, AreArmedThoughAKprobeHasGone) {
  machine_.put(0x112, code({0x48, 0x31, 0xc0, 0x90, 0x90, 0x90, 0xc3}));
  FakeKernel kernel;
  kernel.name({{0x112, "h"}, {0x180, "end"}});
  set_kprobe(0x112);
  TracepointTable table(machine_, shim_, kernel);
  const auto id = add(at(0x118), table);
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
  const auto id = add(at(0x119), table);
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
  ASSERT_TRUE(table.farewell());
  ASSERT_EQ(*table.farewell(), at(0x145)) << "after its ftrace site";
  for (const GuestVirt place : {at(0x005), at(0x145)}) {
    const auto site = table.examine(place);
    ASSERT_TRUE(site) << site.error().message;
    ASSERT_TRUE(table.add(*site));
  }

  const GuestVirt slot = shim_.entries.at(at(0x145));
  const auto& code = shim_.slots.at(slot);

  ASSERT_EQ(code.size(), 2u + 7 + 5) << "what the shim says, lea, jmp rel32";
  EXPECT_EQ(code[1], static_cast<std::byte>(slot.raw())) << "for where it stands";
  EXPECT_EQ(code[2], std::byte{0x48});
  std::int32_t displacement;
  std::memcpy(&displacement, code.data() + 5, sizeof displacement);
  EXPECT_EQ(slot.raw() + 9 + static_cast<std::uint64_t>(displacement), at(0x14c).raw())
      << "the instruction is displaced to where it is, after that";
  EXPECT_EQ(table.slots()[1].begin.raw(), slot.raw() + 2);
  EXPECT_EQ(shim_.slots.at(shim_.entries.at(at(0x005))).size(), 6u) << "the others as ever";
}

TEST_F(Tracepoints, KnowNoFarewellOfAKernelThatCannotStartAnother) {
  ASSERT_TRUE(table_.farewell());
  EXPECT_FALSE(*table_.farewell());
}

TEST_F(Tracepoints, ComeAndGoOneByOneWhileTheOthersStay) {
  const auto first = add(at(0x005));
  ASSERT_TRUE(first);
  arm();
  const auto second = add(at(0x106));
  ASSERT_TRUE(second);
  const GuestVirt slot = shim_.entries.at(at(0x106));
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
    EXPECT_EQ(shim_.entries.at(at(0x106)), slot) << "the same instruction, the same slot";
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
    const auto id = add(at(0x400 + i), table);
    ASSERT_TRUE(id) << id.error().message;
    ASSERT_EQ(id->value, i);
  }
  auto paused = pause();
  ASSERT_TRUE(table.arm(paused));

  for (std::uint64_t i = 0; i < 0x8000; ++i) ASSERT_EQ(add(at(0x400 + i), table)->value, i);
  EXPECT_TRUE(table.drop_changed().empty());
}

}  // namespace
}  // namespace ringside::providers
