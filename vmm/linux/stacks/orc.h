// Kernel stacks: walks a stack in guest memory by the ORC tables of the kernel and its modules
// (arch/x86/include/asm/orc_types.h), which are copied once
// (Documentation/arch/x86/orc-unwinder.rst; arch/x86/kernel/unwind_orc.c).
//   __start_orc_unwind_ip[]  s32: pc = address of the entry itself + value, sorted by pc
//   __start_orc_unwind[]     s16 sp_offset, s16 bp_offset, u16 flags; for a module both arrays are
//                            in struct module's arch.{orc_unwind_ip,orc_unwind,num_orcs}
//   flags   bits 0-3 sp register, 4-7 bp register, then, which differs (OrcForm):
//           4.14 to 6.2  type 8-9 {call, regs, partial regs}, end 10
//           6.3          type 8-9, signal 10, end 11
//           6.4 to 7.0   type 8-10 {undefined, end, call, regs, partial regs}, signal 11
//           since 7.1    the same with other numbers for registers
// The entries themselves tell the form of a table, never the kernel's version. Frames of a kernel
// without ORC (CONFIG_UNWINDER_FRAME_POINTER), and of a module without tables, are walked by frame
// pointers.
// Used by the contexts of firings. Hostile input: tables are copied and sorted; a walk makes at
// most one step for each frame that is wanted, and every word is read by copy.
// Fire context: unwind() and is_text() yes; loading no.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/image_view.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/modules.h"

namespace ringside::guest_linux {

inline constexpr std::uint64_t kOrcEntryBytes = 6;
inline constexpr std::uint64_t kOrcAddressBytes = 4;
/// A limit that no kernel comes near: Debian's 6.12 has 700,000.
inline constexpr std::uint64_t kMaxOrcEntries = 8 << 20;

enum class OrcForm : std::uint8_t { Before63, In63, Since64, Since71 };

/// The layout of the frame at a piece of text; the same for every OrcForm.
struct OrcEntry {
  enum class Base : std::uint8_t {
    Undefined,
    PreviousSp,  // of bp only: the end of the frame
    Sp,
    Bp,
    SpIndirect,  // the word at sp, plus the offset
    BpIndirect,  // the word at bp plus the offset
    Ax,
    Dx,
    Di,
    R10,
    R13,
  };
  enum class Kind : std::uint8_t { Undefined, End, Call, Registers, PartialRegisters };
  std::int16_t sp_offset = 0, bp_offset = 0;
  Base sp = Base::Undefined, bp = Base::Undefined;
  Kind kind = Kind::Undefined;
  bool is_signal = false;  // the caller's frame was interrupted; it called nothing
};

/// The form in which most of the entries make sense; empty when there is none.
std::optional<OrcForm> recognize_orc(std::span<const std::byte> entries);
OrcEntry decode_orc(std::span<const std::byte, kOrcEntryBytes> bytes, OrcForm form);

/// Where a module's tables are, by the kernel's own types.
struct OrcLayout {
  std::optional<ModuleLayout> module;
  std::optional<std::uint32_t> count, addresses, entries;

  static OrcLayout from(const TypeGraph& types);
};

class StackTables {
 public:
  /// The tables of the running kernel and of the modules that it has now.
  static StackTables load(const GuestReader& reader, Kernel& kernel) {
    return load(reader, kernel, OrcLayout::from(kernel.types()));
  }
  static StackTables load(const GuestReader& reader, Kernel& kernel, const OrcLayout& layout);

  /// Adds the text of one module (or vmlinux). `addresses`: a copy of orc_unwind_ip at its own
  /// address; `entries`: one of orc_unwind, which may be empty (frame pointers are used then).
  void add(Kernel::AddressRange text, const ImageView& addresses,
           std::span<const std::byte> entries);
  /// The table of a module that has come since load(): text that lay there before is gone.
  void put_module(const GuestReader& reader, const OrcLayout& layout, GuestVirt structure,
                  const Kernel::AddressRange& text);

  /// A copy of one instruction that runs elsewhere: that at `original`, `length` bytes long, runs
  /// in [begin, begin + size), which ends with a jump to the next instruction.
  struct Moved {
    GuestVirt begin;
    std::uint32_t size = 0;
    GuestVirt original;
    std::uint8_t length = 0;
  };
  /// A frame in one of these is shown and walked as if it were at the original.
  void set_moved(std::vector<Moved> moved);

  bool is_text(std::uint64_t pc) const { return section_of(pc) != nullptr; }
  std::size_t entry_count() const;

  /// The place where a walk begins.
  enum class Start : std::uint8_t {
    Here,    // the first frame is rip
    Caller,  // rsp points at a return address: a function's first instruction or its last
  };
  /// Fills `frames` with code addresses from the innermost frame outward, up to the entry from user
  /// mode; returns how many. A frame that cannot be walked ends it.
  std::size_t unwind(const GuestReader& stack, const Registers& from, Start start,
                     std::span<std::uint64_t> frames) const;
  /// Whether such a walk comes through code in `range`, moved text being where it is. Empty when it
  /// does not get to the entry from user mode, nor to where a thread of the kernel begins.
  std::optional<bool> passes(const GuestReader& stack, const Registers& from, Start start,
                             Kernel::AddressRange range) const;

 private:
  struct Section {
    Kernel::AddressRange text;
    std::vector<std::uint32_t> offsets;  // from text.begin, sorted
    std::vector<OrcEntry> entries;       // of the same index
  };
  /// The first one that begins after it.
  std::vector<Section>::const_iterator section_after(GuestVirt pc) const;
  const Section* section_of(std::uint64_t pc) const;
  std::optional<OrcEntry> find(std::uint64_t pc) const;

  /// `pc`, or the original's address if it lies in moved text.
  std::uint64_t original(std::uint64_t pc) const;

  friend class StackWalk;
  std::vector<Section> sections_;  // by text.begin
  std::vector<Moved> moved_;       // by begin
};

}  // namespace ringside::guest_linux
