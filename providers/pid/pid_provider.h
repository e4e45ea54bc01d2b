// The provider `pid`: probes on the functions and instructions of a process of the guest, as
// pid1234:libc.so.6:malloc:entry. Names are `entry`, `return`, and the offset of an instruction in
// its function, in hexadecimal. Probes are made on demand, for a description that names one process
// by its number, or all by pid*; `a.out` is the program of the one.
// A probe stands in the file that the process has mapped (user_point_table.h), so other processes
// pass it, too. That of a number fires in this process alone, and that of pid* in all that have the
// file mapped, also those that come later. A return is a return instruction, or a jump to another
// function: never an address on the stack, which programs may move or give up.
// Does not: find functions that the file's own symbol table does not name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "providers/context/binding.h"
#include "providers/provider.h"
#include "providers/trap_points/user_point_table.h"
#include "vmm/guest_memory.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/processes/processes.h"

namespace ringside::providers {

class PidProvider final : public Provider {
 public:
  static constexpr std::size_t kMostProbes = 1 << 20;

  /// All must outlive it.
  PidProvider(const vmm::GuestMemory& memory, guest_linux::Kernel& kernel, UserPointTable& table,
              ProbePoints& points);

  /// "pid" and a number, or a star.
  bool has_name(std::string_view provider) const override;
  bool may_match(std::string_view pattern) const override { return pattern.starts_with(name()); }
  std::uint32_t id_count() const override { return kMostProbes; }
  /// Unsupported: the pattern matches more than kMostProbes.
  Result<void> provide(const dif::ProbeDescription& pattern, const Visitor& visit) override;
  Result<void> refusals(const dif::ProbeDescription& pattern, const RefusalVisitor& visit) override;
  Result<std::optional<Probe>> by_id(dif::ProbeId id) override;
  ProbeArguments arguments(const Probe& probe) override;
  std::string detail(const Probe& probe) override;
  Result<void> enable(const Probe& probe) override;
  /// The guest is told before tracing begins which files are to be watched.
  std::optional<std::string> why_fixed(dif::ProbeId id) const override;
  bool is_enabled(dif::ProbeId id) const override;
  void note_disabled(dif::ProbeId id) override;

 private:
  /// A file that a process has mapped.
  struct Module {
    std::string name;
    GuestVirt inode;
    bool is_program = false;
  };
  enum class Kind : std::uint8_t { Entry, Return, Instruction };
  /// Where a probe stands.
  struct Place {
    GuestVirt inode;
    std::uint64_t offset = 0;       // in the file
    std::uint32_t in_function = 0;  // bytes from the function's start
    bool has_value = false;         // of a return
    arch::Condition condition = arch::kNoCondition;
  };
  struct Entry {
    dif::ProbeDescription name;
    std::int32_t process = 0;  // 0: of all
    Kind kind = Kind::Entry;
    std::vector<Place> places;  // of several files of one name all
    bool is_enabled = false;
  };
  using Trouble = std::function<void(const dif::ProbeDescription&, const std::string&)>;

  struct Pattern {
    const dif::ProbeDescription& names;
    std::int32_t process = 0;  // 0: all
    const Trouble& trouble;
    std::set<std::uint32_t>* published = nullptr;  // by index of id; null: nobody asks
  };

  Result<void> look(const dif::ProbeDescription& pattern, const Visitor* visit,
                    const Trouble& trouble);
  std::optional<std::vector<Module>> modules_of(std::uint64_t process) const;
  std::vector<Module> modules_of_all() const;
  void add_modules(const GuestReader& reader, GuestVirt mm, std::vector<Module>& modules) const;
  Result<bool> look_at(const Pattern& pattern, const Module& module);
  Result<void> publish_function(const Pattern& pattern, const Module& module,
                                const guest_linux::FileFunction& function);
  Result<void> publish(const Pattern& pattern, Entry entry);
  static void add_places(Entry& entry, std::span<const Place> places);
  Result<std::vector<Entry>> entries_of(const Pattern& pattern, const Module& module,
                                        const guest_linux::FileFunction& function);
  Entry* find(dif::ProbeId id);

  const vmm::GuestMemory& memory_;
  guest_linux::Kernel& kernel_;
  UserPointTable& table_;
  ProbePoints& points_;
  std::optional<guest_linux::ProcessLayout> layout_;
  std::optional<std::uint32_t> mm_program_;  // mm_struct.exe_file
  std::optional<std::uint32_t> file_inode_;
  GuestVirt init_task_;
  std::vector<Entry> entries_;                    // by index of id
  std::map<std::string, std::uint32_t> numbers_;  // of these, by name
};

}  // namespace ringside::providers
