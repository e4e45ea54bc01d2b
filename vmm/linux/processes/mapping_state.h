// Tells whether a process has changed its mappings while they were looked at, which a process does
// that runs on meanwhile. The kernel changes them with the lock of the address space held to write
// (mmap_lock, include/linux/mmap_lock.h), and counts pages, mappings and, since 6.4, changes.
// Used to follow stacks of recorded traps. Hostile input: a guest can only spoil its own stacks.
// Fire context: read() yes.
#pragma once

#include <cstdint>
#include <optional>

#include "vmm/base/c_type.h"
#include "vmm/base/guest_reader.h"
#include "vmm/linux/layout.h"

namespace ringside::guest_linux {

struct MappingState {
  bool is_changing = false;  // by whoever holds the lock, who may also stand still before it
  std::uint64_t pages = 0, code_pages = 0, mappings = 0, changes = 0;

  bool operator==(const MappingState&) const = default;
};

class MappingStates {
 public:
  /// Empty if the kernel's types do not describe it (a real-time kernel has another lock).
  static std::optional<MappingStates> from(const TypeGraph& types);
  /// `mm`: a struct mm_struct. Empty where it cannot be read.
  std::optional<MappingState> read(const GuestReader& kernel, GuestVirt mm) const;

 private:
  NumberMember lock_, pages_, code_pages_, mappings_;
  std::optional<NumberMember> changes_;
};

}  // namespace ringside::guest_linux
