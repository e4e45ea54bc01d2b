// Walks the user stack of a stopped thread by its programs' unwind tables (eh_frame.h). So code
// without frame pointers is walked, too: libraries in C, C++ and Rust, PLT stubs, signal frames,
// the vdso. Tables are read from the page cache (page_cache.h), since page tables do not map most
// of them; the vdso's from the kernel's copy of it. What is not there is read from a copy of the
// file on the host, once that is known (host_unwind_tables.h), else from the process.
//
// For each frame: the mapping of its code, the image that the mapping is of, and the rules at that
// place. Rules are cached by the file's identity and the place in it, and the facts of images, too;
// so a stack that was seen before costs some reads for each frame and each image. Nothing is cached
// of where files are mapped.
//
// If code has no table (made at run time, or written by hand), its frame pointer is followed. So it
// is if the table cannot be read. A static program that GCC linked has no index of its table, which
// counts as no table. A signal handler that returns into code without a table is known by what that
// code does.
// Hostile input: a walk makes a bounded number of steps, and addresses on the stack only go up,
// except in signal frames. Fire context: walk() yes; everything else no. Each vCPU needs its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/base/guest_reader.h"
#include "vmm/guest_memory.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/processes/eh_frame.h"
#include "vmm/linux/processes/host_unwind_tables.h"
#include "vmm/linux/processes/page_cache.h"
#include "vmm/linux/processes/processes.h"

namespace ringside::guest_linux {

/// Where the kernel has what a walk needs.
struct UserUnwindLayout {
  ProcessLayout process;
  PageCacheLayout pages;
  /// mm_struct.context.vdso_image, vdso_image.data and size: the kernel's copy of the vdso.
  std::optional<std::uint32_t> mm_vdso_image, vdso_data;
  NumberMember vdso_size;

  /// Empty when the kernel's types do not describe processes and files (before 6.1, without BTF).
  static std::optional<UserUnwindLayout> from(const TypeGraph& types, const SymbolTable& symbols);
};

class UserUnwinder {
 public:
  /// The process whose thread is stopped.
  struct Process {
    const GuestReader& kernel;  // reads the kernel's memory
    const GuestReader& memory;  // reads the process's
    GuestVirt mm;               // its struct mm_struct
  };

  /// `memory` and `host` must outlive it. Null: there are no copies.
  UserUnwinder(const vmm::GuestMemory& memory, const UserUnwindLayout& layout,
               HostUnwindTables* host = nullptr);
  ~UserUnwinder();
  UserUnwinder(const UserUnwinder&) = delete;
  UserUnwinder& operator=(const UserUnwinder&) = delete;

  /// Fills `frames` with code addresses from the innermost frame outward: the program counter, then
  /// return addresses; of a signal frame the interrupted instruction. Returns how many.
  std::size_t walk(const Process& process, const Registers& from, std::span<std::uint64_t> frames);

  /// How often a frame's rules were in the cache, and how often not. For tests and benchmarks.
  struct Counts {
    std::uint64_t cached = 0, read = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  class Walk;
  struct Image;
  struct ShortRules;

  const vmm::GuestMemory& memory_;
  const UserUnwindLayout layout_;
  HostUnwindTables* const host_;  // null: none
  // Direct-mapped, by hashes.
  std::vector<Image> images_;
  std::vector<ShortRules> rules_;
  Counts counts_;
};

}  // namespace ringside::guest_linux
