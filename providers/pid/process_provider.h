// The common part of the providers of probes in the guest's processes: the files that processes
// have mapped, and probes that stand at places in them. A description names one process by its
// number at the end of the provider's name, or all by a star.
// A probe stands in the file that the process has mapped (user_point_table.h), so other processes
// pass it, too. That of a number fires in this process alone, and that of a star in all that have
// the file mapped, also those that come later.
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
#include "providers/functions/function_probes.h"
#include "providers/provider.h"
#include "providers/trap_points/user_point_table.h"
#include "vmm/guest_memory.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/paths.h"
#include "vmm/linux/processes/processes.h"

namespace ringside::providers {

class ProcessProvider : public Provider {
 public:
  static constexpr std::size_t kMostProbes = 1 << 20;

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
  /// For probes of all processes.
  Result<std::size_t> follow_files(std::vector<std::string>& names) override;

 protected:
  /// All must outlive it.
  ProcessProvider(std::string_view name, const dif::ProviderAttributes& attributes,
                  const vmm::GuestMemory& memory, guest_linux::Kernel& kernel,
                  UserPointTable& table, ProbePoints& points);

  /// A file that a process has mapped.
  struct Module {
    std::string name;
    GuestVirt inode;
    bool is_program = false;
  };
  /// Where a probe stands.
  struct Place {
    FilePlace at;
    std::uint32_t in_function = 0;  // bytes from the function's start
    const ArgumentPlan* plan = &kNoArguments;
    arch::Condition condition = arch::kNoCondition;
    const TrapFilter* filter = nullptr;  // as a binding's
  };
  struct Entry {
    dif::ProbeDescription name;
    std::int32_t process = 0;     // 0: of all
    std::size_t definition = 0;   // of several probes of one name
    std::vector<Place> places{};  // of several files of one name all
    /// That it is of, where its arguments have types.
    std::optional<FilePlace> function{};
    /// Where it stands in the kernel, too; each time that it is enabled.
    std::function<Result<std::vector<BoundSite>>()> kernel_sites{};
    std::string notes{};  // for -l -v
    ProbeArguments arguments{};
    bool is_enabled = false;
    std::size_t bound = 0;  // of its places
  };
  using Trouble = std::function<void(const dif::ProbeDescription&, const std::string&)>;
  struct Pattern {
    const dif::ProbeDescription& names;
    std::int32_t process = 0;  // 0: all
    const Trouble& trouble;
    std::set<std::uint32_t>* published = nullptr;  // by index of id; null: nobody asks

    /// Whether its module is this one; `a.out` is the program of the one process.
    bool wants(const Module& module) const;
    /// Whether it names a file without metacharacters: then it is worth waiting for servers.
    UserPointTable::Servers servers() const;
  };

  /// Publishes what matches, and tells of what does not. `published` is null where nobody asks for
  /// probes, but for all that there is to tell. `only`: the file in which a description of all
  /// processes is looked for; null: in all that they have mapped.
  virtual Result<void> look(const dif::ProbeDescription& names, const Trouble& trouble,
                            std::set<std::uint32_t>* published, const Module* only) = 0;
  /// Empty where there is no such process; 0: of all.
  std::optional<std::vector<Module>> modules_of(std::int32_t process,
                                                const Module* only = nullptr) const;
  /// Probes that are published can be enabled: their places have room by now.
  Result<void> publish(const Pattern& pattern, std::vector<Entry> entries);
  Result<void> publish(const Pattern& pattern, Entry entry);
  /// The types of the probe's arguments by the DWARF of its file.
  ProbeArguments typed_arguments(const Entry& entry);
  /// For gaps(): how many of the probes for which `counts` holds are missing.
  using Counts = std::function<bool(const dif::ProbeDescription&)>;
  void sum_up_missing(const dif::ProbeDescription& pattern, const Counts& counts,
                      const RefusalVisitor& visit);
  /// The number of a process, behind a provider's name.
  static std::optional<std::int32_t> number_of_process(std::string_view text);
  UserPointTable& table() { return table_; }
  /// UserPointTable's, and tells where they are from.
  const guest_linux::FileFunctions* functions_of(
      const Module& module, UserPointTable::Servers servers = UserPointTable::Servers::NotAsked);

 private:
  /// Each once, by the files and inodes that were seen.
  struct Modules {
    std::vector<Module> all{};
    std::set<GuestVirt> files{}, inodes{};
  };
  GuestVirt inode_of(const GuestReader& reader, GuestVirt file) const;
  GuestVirt program_of(const GuestReader& reader, GuestVirt mm) const;
  void add_modules(const GuestReader& reader, GuestVirt mm, Modules& modules) const;
  void name_file(const GuestReader& reader, GuestVirt file, GuestVirt inode) const;
  std::vector<Module> modules_of_all(const GuestReader& reader) const;
  Result<void> bind(const Probe& probe, Entry& entry);
  Result<void> bind_places(const Probe& probe, Entry& entry);
  std::map<std::string, std::vector<std::uint32_t>> followed() const;
  Result<std::size_t> follow(const Module& module, std::span<const std::uint32_t> numbers);
  static void add_places(Entry& entry, std::span<const Place> places);
  Entry* find(dif::ProbeId id);

  const vmm::GuestMemory& memory_;
  guest_linux::Kernel& kernel_;
  UserPointTable& table_;
  ProbePoints& points_;
  std::optional<guest_linux::ProcessLayout> layout_;
  std::optional<std::uint32_t> mm_program_;  // mm_struct.exe_file
  std::optional<std::uint32_t> mm_text_;     // mm_struct.start_code
  std::optional<std::uint32_t> file_inode_;
  const guest_linux::LinuxPaths paths_;
  GuestVirt init_task_;
  std::set<GuestVirt> known_;                     // files that were looked at, by inode
  std::vector<Entry> entries_;                    // by index of id
  std::map<std::string, std::uint32_t> numbers_;  // of these, by process, definition and name
};

}  // namespace ringside::providers
