// A machine that is looked at: its memory, the Linux in it, and how its lists are read. Nothing is
// written to it. Used by the commands of this folder.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "vmm/base/result.h"
#include "vmm/linux/kernel.h"
#include "vmm/linux/linear_map.h"
#include "vmm/linux/listing/listing.h"
#include "vmm/linux/page_copies.h"
#include "vmm/machine.h"

namespace ringside::cli {

class LookedAt {
 public:
  enum class Life : std::uint8_t { Runs, Saved };
  LookedAt(std::unique_ptr<vmm::Machine> machine, std::unique_ptr<guest_linux::Kernel> kernel,
           std::string name, Life life);
  LookedAt(const LookedAt&) = delete;
  LookedAt& operator=(const LookedAt&) = delete;
  ~LookedAt();

  const std::string& name() const { return name_; }
  const vmm::Machine& machine() const { return *machine_; }
  /// Whether its process is still there.
  bool is_there() const { return machine_->state() == vmm::MachineState::Running; }
  /// Reads anew each time.
  const guest_linux::KernelView& view() const { return view_; }
  /// For lists: reads by whole pages that are kept, where the guest's RAM is only copied.
  const guest_linux::ListedGuest& guest() const { return guest_; }
  void forget() const;

 private:
  bool read_process(GuestVirt page_table, GuestVirt at, std::span<std::byte> out);

  std::unique_ptr<vmm::Machine> machine_;
  std::unique_ptr<guest_linux::Kernel> kernel_;
  std::string name_;
  const vmm::PageTable table_;
  const std::optional<GuestVirt> linear_;  // where RAM is only copied
  guest_linux::LinearMapReader reader_;
  guest_linux::KernelView view_;
  guest_linux::PageCopies copies_;
  guest_linux::KernelView list_view_;
  guest_linux::ListedGuest guest_;
};

/// A machine to look at: what the user has named, or one of this host's.
struct LookTarget {
  std::string text;  // as --attach takes it
  std::string name;  // what the list of this host's machines calls it; empty: not known yet
};

/// Those of the command line, or all of this host if it names none.
std::vector<LookTarget> look_targets(const CommandLine& line);
/// Finds the machine and the Linux in it. `types_file`: of --types, or empty.
Result<std::unique_ptr<LookedAt>> look_at_machine(const LookTarget& target,
                                                  const std::string& types_file);
/// The same of --core.
Result<std::unique_ptr<LookedAt>> look_at_saved(const CommandLine& line);

}  // namespace ringside::cli
