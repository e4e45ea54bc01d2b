// A machine with a function or two, and a shim, for the tests of the trap point table. Not linked
// into the product.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "disasm/code_for_tests.h"
#include "providers/trap_points/trap_point_table.h"
#include "vmm/inert_machine_for_tests.h"
#include "vmm/linux/inert_kernel_for_tests.h"
#include "vmm/linux/text/kprobe_fakes_for_tests.h"
#include "vmm/shim/trap.h"
#include "vmm/shim/trap_table.h"

namespace ringside::providers::trap_point_fakes {

using disasm::code;
using guest_linux::Symbol;
using Policy = SitePolicy;

inline constexpr std::uint64_t kRam = 8 << 20;
inline constexpr GuestVirt kText{0xffffffff81000000};
inline constexpr GuestPhys kTextPhys{2 << 20}, kRoot{0x1000}, kPud{0x2000}, kPmd{0x3000};
inline constexpr GuestVirt kSlots{0xffffffff9f400000};
inline constexpr std::uint64_t kSlotBytes = 1 << 20;

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
inline constexpr std::uint64_t kKprobeTable = 0x100000, kTextMutex = 0x100400, kKprobes = 0x101000;

class FakeShim : public vmm::TrapTable {
 public:
  Result<GuestVirt> allocate_slot(std::size_t size) override {
    if (full) return fail(ErrorCode::Limit, "full");
    const GuestVirt slot(kSlots.raw() + used_);
    used_ += size;
    return slot;
  }
  Result<void> write_slot(GuestVirt slot, std::span<const std::byte> bytes,
                          vmm::SlotHeader header = {}) override {
    if (refuses_slots) return fail(ErrorCode::MachineGone, "refused");
    headers[slot] = header;
    slots[slot].assign(bytes.begin(), bytes.end());
    return {};
  }
  bool shares_slots() const override { return shares; }
  Result<void> add_entry(GuestVirt address, GuestVirt slot) override {
    EXPECT_TRUE(slots.contains(slot)) << "slot before entry";
    EXPECT_FALSE(entries.contains(address)) << "enabled";
    known[address] = slot;
    return {};
  }
  Result<void> record_at(std::span<const GuestVirt> addresses, std::uint8_t list = 0) override {
    if (!has_rings) return vmm::TrapTable::record_at(addresses, list);
    for (const GuestVirt address : addresses) {
      EXPECT_TRUE(known.contains(address) && !entries.contains(address));
      recording.push_back(address);
    }
    return {};
  }
  Result<void> enable_entries(std::span<const GuestVirt> addresses) override {
    for (const GuestVirt address : addresses) entries[address] = known.at(address);
    return {};
  }
  void disable_entry(GuestVirt address) override { entries.erase(address); }
  void note_arming() override { ++armings; }
  Result<std::vector<std::byte>> kexec_notice(GuestVirt slot) override {
    EXPECT_NE(used_, 0u) << "a shim is there once something has asked for a slot";
    std::vector<std::byte> code(kKexecNoticeBytes, std::byte{0x90});
    code.back() = static_cast<std::byte>(slot.raw());
    return code;
  }
  Result<std::vector<std::byte>> fault_search(GuestVirt slot) override {
    searching.push_back(slot);
    return std::vector<std::byte>(kFaultSearchBytes, std::byte{0x90});
  }
  Result<void> add_fault(GuestVirt slot, GuestVirt place) override {
    faults[slot] = place;
    return {};
  }
  vmm::ShimState state() const override { return now; }
  Result<void> check_mapped(vmm::PausedMachine&) const override {
    if (!mapped) return fail(ErrorCode::Invalid, "another kernel");
    return {};
  }
  vmm::ShimPlace place() const override { return {kSlots, kSlotBytes, kSlots, kSlotBytes}; }
  vmm::TrapsUnderWay under_way() const override { return {}; }
  bool have_answers(const vmm::TrapsUnderWay&) const override { return true; }
  std::uint64_t slot_room() const override { return room; }
  std::optional<GuestVirt> jump_entry() const override { return entry_of_jumps; }

  bool full = false, refuses_slots = false, shares = false;
  unsigned armings = 0;
  std::uint64_t room = kSlotBytes;
  std::optional<GuestVirt> entry_of_jumps;  // none: no jumps
  bool mapped = true, has_rings = false;
  vmm::ShimState now = vmm::ShimState::There;
  std::map<GuestVirt, std::vector<std::byte>> slots;
  std::map<GuestVirt, vmm::SlotHeader> headers;   // what lies before each
  std::map<GuestVirt, GuestVirt> known, entries;  // those that are enabled
  std::map<GuestVirt, GuestVirt> faults;          // slot to place
  std::vector<GuestVirt> searching;               // slots
  std::vector<GuestVirt> recording;

 private:
  std::uint64_t used_ = 0;
};

struct NoSink final : vmm::TrapSink {
  void on_trap(const vmm::Trap&) override {}
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

  TypeGraph& types_to_fill() { return types_; }

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

/// A kernel with machine_kexec, or a function of another name: ftrace nop, lea rax [rip], ret.
struct KexecKernel : FakeKernel {
  explicit KexecKernel(FakeMachine& machine, const char* function = "machine_kexec") {
    machine.put(0x140, code({0x0f, 0x1f, 0x44, 0, 0, 0x48, 0x8d, 0x05, 0, 0, 0, 0, 0xc3}));
    name({{0x000, "f"}, {0x140, function}, {0x14d, "end"}, {0x180000, "data"}});
  }
};

/// f: ftrace nop, push rbp, lea rax [rip], ret. g: cs call f, ret.
class TrapPoints : public testing::Test {
 protected:
  TrapPoints() {
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
  Result<TrapPointId> add(GuestVirt at) { return table_.examine_and_add(at); }
  std::string reason(std::uint64_t offset, Policy policy = Policy::Normal) {
    const auto allowed = table_.examine(at(offset), policy);
    if (allowed) return "allowed";
    EXPECT_EQ(allowed.error().code, ErrorCode::Unsupported);
    return allowed.error().message;
  }

  FakeMachine machine_;
  FakeShim shim_;
  NamedKernel kernel_;
  TrapPointTable table_{machine_, shim_, kernel_};
};

}  // namespace ringside::providers::trap_point_fakes
