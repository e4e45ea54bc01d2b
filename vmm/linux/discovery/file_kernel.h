// A kernel known from its file, before it runs, for tracing from the first instruction: symbols
// (the ELF symbol table, or kallsyms found in the image), types, text, and the places that it
// patches itself. Of an ELF kernel other than Linux only the symbols are known.
// Used where a machine is held before it begins. The file is a user's and may be anything: sizes
// are checked, loops bounded. Per-CPU bases and modules, which only the running kernel has, are
// empty.
// Fire context: as Kernel; text() yes; everything else no.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "vmm/base/guest_reader.h"
#include "vmm/kernel_file/kernel_file.h"
#include "vmm/linux/kernel.h"

namespace ringside::guest_linux {

class TypeFile;  // types/type_file.h

/// The distance of a running kernel from the place that it was linked for (KASLR).
struct KaslrOffset {
  std::int64_t slide = 0;           // of its virtual addresses
  std::int64_t physical_slide = 0;  // of the addresses that its segments ask for
};

class FileKernel : public Kernel {
 public:
  /// Whether it is Linux; any other has no types, no layout and no tasks.
  virtual bool is_linux() const = 0;
  /// Reads the file's own bytes, at the addresses where they run.
  virtual const GuestReader& text() const = 0;
  /// The physical address where the loader puts the code of a virtual one; empty outside the file's
  /// segments.
  virtual std::optional<GuestPhys> loaded_at(GuestVirt at) const = 0;
  /// The text that the kernel rewrites once while it boots (alternatives, return thunks, lock
  /// prefixes...), sorted. An empty optional: it cannot be told, so any text may be rewritten.
  virtual const std::optional<std::vector<PatchedSite>>& patched_at_boot() const = 0;
  /// Text that the kernel frees when it has booted; its memory may hold anything after that.
  virtual std::optional<AddressRange> init_text() const = 0;
  /// Reads the per-CPU bases through the page table of a vCPU, once the kernel has them (after
  /// setup_per_cpu_areas()); false when they make no sense yet.
  virtual bool learn_cpus(const GuestReader& live) = 0;
};

/// Invalid or Unsupported, naming the file, when it has no symbols that can be read. The kernel
/// keeps the file's bytes until end_set_up(); after that text() reads nothing. `types`: another
/// file that has its types; null: its own.
Result<std::unique_ptr<FileKernel>> kernel_from_file(const vmm::KernelFile& file,
                                                     KaslrOffset move = {},
                                                     const TypeFile* types = nullptr);

}  // namespace ringside::guest_linux
