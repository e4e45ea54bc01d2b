// The RAM of a guest in a QEMU process that someone else started: found through its monitor. Each
// address that the monitor tells is proved by the process's own mappings. RAM in a file that nobody
// can shrink is mapped here too; any other RAM is copied, from the file or out of the process.
// Used by MonitoredMachine. Does not: pause, or believe the monitor about any process but its own.
// Lock: one, for finding plugged-in memory; commands are sent under it.
// Fire context: memory() yes, the rest no.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vmm/attach/host/host_process.h"
#include "vmm/attach/monitor/memory_map.h"
#include "vmm/attach/monitor/monitor.h"
#include "vmm/attach/ram/plugged_memory.h"
#include "vmm/base/unique_fd.h"
#include "vmm/guest_memory.h"

namespace ringside::vmm {

class MonitoredRam {
 public:
  /// Reading needs fewer rights: the user need not have write access to the files, and if all RAM
  /// is in files, no permission to trace the process.
  enum class Access : std::uint8_t { Write, Read };
  /// `pid`: the process whose memory it is, from somebody we believe. `monitor` must outlive this.
  static Result<std::unique_ptr<MonitoredRam>> find(Monitor& monitor, pid_t pid,
                                                    Access access = Access::Write);
  ~MonitoredRam();
  MonitoredRam(const MonitoredRam&) = delete;
  MonitoredRam& operator=(const MonitoredRam&) = delete;

  GuestMemory& memory() { return memory_; }
  /// Before anybody uses the memory: a piece that was plugged in just now and stays, at `place`,
  /// which is all of QEMU's memory `backend`.
  Result<void> add(GuestMemory::Extent place, const std::string& backend);
  /// Readable when it is time to look again; -1 when nothing can be plugged in.
  int plug_event_fd() const { return plugged_ ? plugged_->event_fd() : -1; }
  /// Makes plug_event_fd() readable.
  void ask_for_look() const {
    if (plugged_) plugged_->ask_for_look();
  }
  /// Asks what is plugged in now. After an error nothing of it can be read.
  Result<void> look_again();

 private:
  struct HostPiece : MappedPiece {
    std::uint64_t host = 0;
  };
  struct Backed {
    std::vector<GuestMemory::Region> mapped;
    std::vector<GuestMemory::CopiedRegion> copied;
  };

  MonitoredRam(Monitor& monitor, pid_t pid, Access access)
      : monitor_(monitor), pid_(pid), access_(access) {}
  Result<void> set_up();
  bool is_fit(const std::vector<MemoryMapping>& mappings) const;
  Result<std::vector<HostPiece>> locate();
  Result<std::uint64_t> ask(GuestPhys at, const std::string& backend) const;
  Result<void> check_mapped(const std::vector<HostPiece>& pieces) const;
  Result<bool> back(const HostPiece& piece, Backed& backed);
  Result<void> check_window(const MemoryMap& map) const;
  bool is_pluggable(const MappedPiece& piece) const;
  Result<void> set_plugged(const std::vector<HostPiece>& pieces);

  Monitor& monitor_;
  const pid_t pid_;
  const Access access_;
  std::shared_ptr<CopiedBytes> process_;  // null where it is not for us and all RAM is in files
  std::vector<UniqueFd> files_;
  std::vector<std::span<std::byte>> mappings_;
  std::optional<GuestMemory::Extent> plug_window_;
  std::shared_ptr<PluggedMemory> plugged_;
  std::mutex mutex_;
  Backed backed_;
  GuestMemory memory_;
};

}  // namespace ringside::vmm
