// The Linux kernel of a guest as the host knows it: release, symbols, types, modules, per-CPU data
// and `current`. All of it is read from guest memory and may be a lie: walks are bounded, sizes
// are checked, and cycles are ended.
//
// Used by everything above vmm/linux. discovery/discover.h finds a running kernel:
//   const std::unique_ptr<Kernel> kernel = TRY(discover_kernel(machine));
//   const Symbol* read = kernel->symbols().find("vfs_read");
//
// Fire context: current_task(), cpu_of() and the readers; everything else no.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/base/c_type.h"
#include "vmm/base/result.h"
#include "vmm/linux/symbol_table.h"
#include "vmm/machine.h"
#include "vmm/page_walk.h"

namespace ringside::guest_linux {

/// Offsets in structures, in bytes, from BTF, for built-in variables and the installer. A member
/// that the guest's types lack is empty; a program that needs it is refused, by name.
struct KernelLayout {
  std::optional<std::uint32_t> task_comm, task_pid, task_tgid, task_start_time, task_real_parent,
      task_cred, task_sum_exec_runtime, task_exec_start, task_mm, task_stack;
  std::optional<std::uint32_t> cred_uid, cred_gid;
  std::optional<std::uint32_t> rq_clock, rq_clock_task;
  std::optional<std::uint32_t> pt_regs_ax, pt_regs_orig_ax, pt_regs_ip, pt_regs_sp, pt_regs_cs;
};

class Kernel {
 public:
  virtual ~Kernel() = default;

  virtual std::string_view release() const = 0;     // "6.1.0-56-cloud-amd64"
  virtual const vmm::PageTable& table() const = 0;  // init_top_pgt
  /// table() with the levels that it has by now: a kernel switches to five while it boots if its
  /// processor has them.
  virtual vmm::PageTable table_in(const vmm::GuestMemory&) const { return table(); }
  virtual const SymbolTable& symbols() const = 0;
  /// The types of the kernel and its modules. A program's own types go into an overlay of it.
  virtual const TypeGraph& types() const = 0;
  /// The same graph, for types of programs: nothing finds them by name, and they are no module's
  /// (module_of()). Null: this kernel runs no programs.
  virtual TypeGraph* program_types() { return nullptr; }
  virtual const KernelLayout& layout() const = 0;
  /// The prototype (TypeKind::Function) of a function; empty when BTF has none.
  virtual std::optional<TypeId> prototype(const Symbol& function) const = 0;

  /// The module (index into SymbolTable::modules()) that defines the type; empty for built-in types
  /// and those of overlays.
  virtual std::optional<std::uint16_t> module_of(TypeId type) const {
    (void)type;
    return {};
  }

  /// The per-CPU base of each CPU (__per_cpu_offset), by CPU number.
  virtual std::span<const std::uint64_t> percpu_bases() const = 0;
  /// The CPU that this per-CPU base belongs to; empty for no CPU's.
  virtual std::optional<std::uint32_t> cpu_of(GuestVirt percpu_base) const = 0;
  /// `current` of the CPU with this per-CPU base: a struct task_struct. Read now, through `kernel`.
  virtual Result<GuestVirt, Fault> current_task(const GuestReader& kernel,
                                                GuestVirt percpu_base) const = 0;
  /// Reads the module list again; true when it changed. symbols() and types() are new then, and
  /// pointers into the old ones dangle.
  virtual Result<bool> refresh_modules() = 0;

  struct AddressRange {
    GuestVirt begin, end;
    /// The `size` bytes from `begin` on, cut at the highest address: sizes come from the guest.
    static AddressRange of(GuestVirt begin, std::uint64_t size) {
      return {begin, begin.checked_add(size).value_or(GuestVirt(UINT64_MAX))};
    }
    bool contains(GuestVirt at) const { return begin <= at && at < end; }
  };
  /// Text that must not carry an int3: entry text, .noinstr.text, the int3 path, init text.
  virtual std::span<const AddressRange> forbidden_text() const = 0;
  /// A place in the text that the kernel patches itself (jump labels, static calls), or an
  /// instruction whose fault it looks up by address (exception table).
  struct PatchedSite {
    GuestVirt address;
    std::uint8_t length = 0;  // bytes from address on
    std::string_view what;    // "jump label", "static call", "exception table"
    GuestVirt target{};       // of a jump label: where it jumps to when it is on
    GuestVirt key{};          // of a jump label or static call: what switches it
    GuestVirt fixup{};        // of the exception table: where the instruction goes on after a fault
    std::uint32_t data = 0;   // of the exception table, as the kernel has it
  };
  /// All of them, sorted by address.
  virtual std::span<const PatchedSite> patched_sites() const = 0;
  /// The sites of a sorted table from `at` on.
  static std::span<const PatchedSite> sites_from(std::span<const PatchedSite> sites, GuestVirt at) {
    const auto first = std::ranges::lower_bound(sites, at, {}, &PatchedSite::address);
    return sites.subspan(static_cast<std::size_t>(first - sites.begin()));
  }
  /// The first site of a sorted table that shares a byte with [at, at + length); null when none
  /// does.
  static const PatchedSite* site_in(std::span<const PatchedSite> sites, GuestVirt at,
                                    std::size_t length);

  /// Adds a module that the guest loads while the kernel is traced, before or after end_set_up().
  /// `structure` is the struct module that the guest's loader has prepared; the module's init has
  /// not run yet. From now on symbols() and patched_sites() include the module's; it has no types.
  /// Invalid, and nothing changes, if it cannot be a module. Limit if there is no room for it.
  struct LateModule {
    std::uint16_t module = 0;  // SymbolTable::put_late()
    std::string name;
    GuestVirt structure;
    AddressRange text;
    std::optional<AddressRange> before{};  // where the same one lay the last time
  };
  virtual Result<LateModule> admit_module(GuestVirt structure);

  /// Lines for the user, each about a table of the guest that was left out because it would take
  /// too much of our memory. Each is returned once.
  std::vector<std::string> take_omissions() { return std::exchange(omissions_, {}); }
  /// Adds such a line. The same text is kept once, and their number is bounded.
  void note_omission(std::string text);

  /// Frees the memory that only compiling and setting up probes need, which is most of it. After it
  /// types() has only the built-in types (destroy overlays first), prototype() finds nothing, and
  /// the module list is not read again; admit_module() goes on. patched_sites() stays: probes may
  /// come while others fire.
  virtual void end_set_up() {}

 private:
  std::vector<std::string> omissions_;
  std::set<std::string> omitted_;
};

}  // namespace ringside::guest_linux
