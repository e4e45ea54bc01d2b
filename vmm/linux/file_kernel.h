// A kernel known from its file, before it runs: symbols (the ELF symbol table, or kallsyms found in
// the image), types, text and what the kernel patches itself. For tracing from the first
// instruction. Also any other ELF kernel, of which only the symbols are known.
// Used where a machine is held before it begins. The file is a user's and may be anything: sizes
// are checked, loops bounded. What only the running kernel knows (per-CPU bases, modules) is empty.
// Fire context: as Kernel; text() yes; everything else no.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "vmm/base/guest_reader.h"
#include "vmm/kernel_file/kernel_file.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

/// By how much a kernel runs and lies elsewhere than it was linked (KASLR).
struct KernelMove {
  std::int64_t slide = 0;           // of its virtual addresses
  std::int64_t physical_slide = 0;  // of the addresses that its segments ask for
};

class FileKernel : public Kernel {
 public:
  /// Whether it is a Linux; if not, it has no types, no layout and no tasks.
  virtual bool is_linux() const = 0;
  /// The file's own bytes, at the addresses where they run.
  virtual const GuestReader& text() const = 0;
  /// Where the loader puts what runs at an address; empty for what is not in the file's segments.
  virtual std::optional<GuestPhys> loaded_at(GuestVirt at) const = 0;
  /// Text that the kernel rewrites once while it boots (alternatives, return thunks, lock
  /// prefixes...), sorted; empty optional when that cannot be told, so it may be any.
  virtual const std::optional<std::vector<PatchedSite>>& patched_at_boot() const = 0;
  /// Text that is freed when the kernel has booted, and may be used for anything then.
  virtual std::optional<AddressRange> init_text() const = 0;
  /// Reads the per-CPU bases through the page table of a vCPU, once the kernel has them (after
  /// setup_per_cpu_areas()); false when they make no sense yet.
  virtual bool learn_cpus(const GuestReader& live) = 0;
};

/// Invalid or Unsupported, naming the file, when it holds no symbols that can be read. The kernel
/// keeps the file until end_set_up(), and text() has nothing left then.
Result<std::unique_ptr<FileKernel>> kernel_from_file(const vmm::KernelFile& file,
                                                     KernelMove move = {});

}  // namespace ringside::guest_linux
