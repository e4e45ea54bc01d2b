// What the host knows of the Linux inside: release, symbols, types, modules, per-CPU data and
// current. Found in guest memory alone. All of it is hostile: bounded walks, sizes checked, cycles
// ended.
// Fire context: current_task(), cpu_of() and the readers; everything else no.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
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
#include "vmm/linux/symbols/name_index.h"
#include "vmm/machine.h"
#include "vmm/page_walk.h"

namespace ringside::guest_linux {

struct Symbol {
  GuestVirt address;
  std::uint64_t size = 0;    // to the next symbol of its section or module; 0 unknown
  std::string_view name;     // owned by the table
  char type = '?';           // nm's letter: t T w W text; d D b B r R data; a A absolute
  std::uint16_t module = 0;  // index into SymbolTable::modules(); 0 is vmlinux

  bool is_text() const { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }
};

struct Module {
  std::string name;  // "vmlinux" for index 0
  GuestVirt text_base;
  std::uint64_t text_size = 0;
  std::size_t btf_bytes = 0;  // 0: the module carries no types

  bool has_text_at(GuestVirt at) const {
    return at >= text_base && at.raw() - text_base.raw() < text_size;
  }
};

class SymbolTable {
 public:
  /// Sorted by address; __pfx_ symbols are left out.
  std::span<const Symbol> symbols() const { return symbols_; }
  std::span<const Module> modules() const { return modules_; }
  /// First symbol of that name; vmlinux before modules unless `module` names one.
  const Symbol* find(std::string_view name, std::string_view module = {}) const;
  /// The symbol that covers `address`.
  const Symbol* at(GuestVirt address) const;
  /// "mod`name+0x10", "mod`name" or "0x..." as dtrace prints code addresses.
  std::string describe(GuestVirt address) const;

  /// Kernels other than Linux may run in the lower half, where Linux's per-CPU offsets are no
  /// addresses. Before seal().
  void accept_low_addresses() { lowest_ = 1; }
  void add_module(Module module, std::vector<Symbol> symbols);
  /// Sorts, fills sizes and builds the index; after the last add_module().
  void seal();
  std::string_view intern(std::string text);
  /// Keeps `names` alive as long as the table: symbols' names may view into it.
  void adopt(std::shared_ptr<const std::string> names);

 private:
  void sort_by_address();
  void fill_sizes();
  void build_index();

  std::uint64_t lowest_ = std::uint64_t{1} << 63;  // what lies below is no address
  std::vector<Symbol> symbols_;
  std::vector<Module> modules_;
  std::deque<std::string> blobs_;  // a deque: short strings must not move
  std::vector<std::shared_ptr<const std::string>> adopted_;
  NameIndex by_name_;                     // the first symbol of each name
  std::vector<std::uint32_t> next_same_;  // the next one of the same name, by symbol
};

/// Offsets of the structures that built-in variables and the installer need, from BTF.
/// An empty one was not in the guest's types: what needs it is refused by name.
struct KernelLayout {
  std::optional<std::uint32_t> task_comm, task_pid, task_tgid, task_real_parent, task_cred,
      task_sum_exec_runtime, task_mm, task_stack;
  std::optional<std::uint32_t> cred_uid, cred_gid;
  std::optional<std::uint32_t> pt_regs_ax, pt_regs_orig_ax, pt_regs_ip, pt_regs_sp, pt_regs_cs;
};

class Kernel {
 public:
  /// Finds the running kernel in a machine's memory. NotFound while it has not booted far enough
  /// (no VMCOREINFO yet, or system_state is not SYSTEM_RUNNING): try again later. Other errors are
  /// final and say what this kernel lacks (BTF, kallsyms).
  static Result<std::unique_ptr<Kernel>> discover(vmm::Machine& machine);
  virtual ~Kernel() = default;

  virtual std::string_view release() const = 0;     // "6.1.0-56-cloud-amd64"
  virtual const vmm::PageTable& table() const = 0;  // init_top_pgt
  /// table() with as many levels as it has by now: a kernel that boots finds out its processor's.
  virtual vmm::PageTable table_in(const vmm::GuestMemory&) const { return table(); }
  virtual const SymbolTable& symbols() const = 0;
  /// The kernel's and its modules' types. A program's own go into an overlay of it.
  virtual const TypeGraph& types() const = 0;
  virtual const KernelLayout& layout() const = 0;
  /// The prototype (TypeKind::Function) of a function, by symbol.
  virtual std::optional<TypeId> prototype(const Symbol& function) const = 0;

  /// The module (index into SymbolTable::modules()) whose own type this is; empty for the built-in
  /// ones and those of overlays.
  virtual std::optional<std::uint16_t> module_of(TypeId type) const {
    (void)type;
    return {};
  }

  /// Per-CPU base of each CPU (__per_cpu_offset).
  virtual std::span<const std::uint64_t> percpu_bases() const = 0;
  /// The CPU that this per-cpu base belongs to.
  virtual std::optional<std::uint32_t> cpu_of(GuestVirt percpu_base) const = 0;
  /// `current` of a CPU, read now.
  virtual Result<GuestVirt, Fault> current_task(const GuestReader& kernel,
                                                GuestVirt percpu_base) const = 0;
  /// Reads the module list again; true when it changed (symbols() and types() are then new).
  virtual Result<bool> refresh_modules() = 0;

  struct AddressRange {
    GuestVirt begin, end;
    /// The `size` bytes from `begin` on, as far as there are addresses: sizes come from the guest.
    static AddressRange of(GuestVirt begin, std::uint64_t size) {
      return {begin, begin.checked_add(size).value_or(GuestVirt(UINT64_MAX))};
    }
    bool contains(GuestVirt at) const { return begin <= at && at < end; }
  };
  /// Text that must not carry an int3: entry text, .noinstr.text, the int3 path, init text.
  virtual std::span<const AddressRange> forbidden_text() const = 0;
  /// Addresses of instructions with an exception-table entry, and of bytes that the kernel patches
  /// itself (jump labels, static calls), sorted; each with what it is, for messages.
  struct PatchedSite {
    GuestVirt address;
    std::uint8_t length = 0;  // bytes from address on
    std::string_view what;    // "jump label", "static call", "exception table"
    GuestVirt target{};       // of a jump label: where it leads when it jumps
  };
  virtual std::span<const PatchedSite> patched_sites() const = 0;
  /// Those of a table so sorted that begin at `at` or behind it.
  static std::span<const PatchedSite> sites_from(std::span<const PatchedSite> sites, GuestVirt at) {
    const auto first = std::ranges::lower_bound(sites, at, {}, &PatchedSite::address);
    return sites.subspan(static_cast<std::size_t>(first - sites.begin()));
  }
  /// The first of them that shares a byte with [at, at + length); null when none does.
  static const PatchedSite* site_in(std::span<const PatchedSite> sites, GuestVirt at,
                                    std::size_t length);

  /// What of the guest's was left out because it would take too much of our memory, a line for the
  /// user each; empty from then on.
  std::vector<std::string> take_omissions() { return std::exchange(omissions_, {}); }
  /// For who reads the guest's tables. The same text is told once, and only so many are.
  void note_omission(std::string text);

  /// Gives back what only compiling and setting up probes need, which is more than all the rest:
  /// types() has the built-in ones left (so overlays go first), prototype() nothing, and the module
  /// list is not read again. patched_sites() stays: probes come while others fire.
  virtual void end_set_up() {}

 private:
  std::vector<std::string> omissions_;
  std::set<std::string> omitted_;
};

}  // namespace ringside::guest_linux
