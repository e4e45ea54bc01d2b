// The ORC tables of a kernel and its modules (orc.h), copied and sorted: they describe the frame at
// each piece of kernel text. Text without a table (CONFIG_UNWINDER_FRAME_POINTER, or a module that
// was built so) is unwound by frame pointers.
// load_stack_tables() copies those of a running guest: vmlinux's, which lie between pairs of
// symbols, and a module's, which its struct module names (arch_module's orc_unwind_ip, orc_unwind
// and num_orcs). Walked by stack_walk.h. Hostile input: counts are bounded. Fire context:
// is_text(), find() and original() yes; everything else no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vmm/base/address.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/image_view.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/modules.h"
#include "vmm/linux/stacks/orc.h"

namespace ringside::guest_linux {

class StackTables {
 public:
  /// Adds the text of one module (or vmlinux). `addresses`: a copy of orc_unwind_ip at its own
  /// address; `entries`: one of orc_unwind, which may be empty (frame pointers are used then).
  void add(Kernel::AddressRange text, const ImageView& addresses,
           std::span<const std::byte> entries);
  /// Forgets all text that has a part in this range.
  void erase(const Kernel::AddressRange& text);

  /// A copy of one instruction that runs elsewhere: that at `original`, `length` bytes long, runs
  /// in [begin, begin + size), which ends with a jump to the next instruction. Or, with `words`, a
  /// part of a copy that several originals share: the stack has so many words more than at the
  /// original, and the topmost is an address `length` bytes behind that.
  struct Moved {
    GuestVirt begin;
    std::uint32_t size = 0;
    GuestVirt original;
    std::uint8_t length = 0;
    std::uint8_t words = 0;
  };
  /// A frame in one of these is shown and walked as if it were at the original.
  void set_moved(std::vector<Moved> moved);

  bool is_text(std::uint64_t pc) const { return section_of(pc) != nullptr; }
  std::size_t entry_count() const;
  /// The frame at `pc`; empty outside of all text, and where a table knows nothing.
  std::optional<OrcEntry> find(std::uint64_t pc) const;
  struct Position {
    std::uint64_t pc = 0, sp = 0;
  };
  /// `at`, or where the original would be if it lies in moved text.
  Position original(Position at, const GuestReader& stack) const;

 private:
  struct Section {
    Kernel::AddressRange text;
    std::vector<std::uint32_t> offsets;  // from text.begin, sorted
    std::vector<OrcEntry> entries;       // of the same index
  };
  /// The first one that begins after it.
  std::vector<Section>::const_iterator section_after(GuestVirt pc) const;
  const Section* section_of(std::uint64_t pc) const;

  std::vector<Section> sections_;  // by text.begin
  std::vector<Moved> moved_;       // by begin
};

/// Where a module's tables are, by the kernel's own types.
struct OrcLayout {
  std::optional<ModuleLayout> module;
  std::optional<std::uint32_t> count, addresses, entries;

  static OrcLayout from(const TypeGraph& types);
};

/// The tables of the running kernel and of the modules that it has now. Those that are too large
/// are left out, and noted by the kernel (Kernel::note_omission).
StackTables load_stack_tables(const GuestReader& reader, Kernel& kernel, const OrcLayout& layout);
inline StackTables load_stack_tables(const GuestReader& reader, Kernel& kernel) {
  return load_stack_tables(reader, kernel, OrcLayout::from(kernel.types()));
}

/// Adds the table of a module that has come since then: text that lay there before is gone.
void put_module(StackTables& tables, const GuestReader& reader, const OrcLayout& layout,
                GuestVirt structure, const Kernel::AddressRange& text);

}  // namespace ringside::guest_linux
