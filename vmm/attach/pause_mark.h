// A file in the user's runtime folder that exists while ringside holds a machine's guest paused. If
// ringside is killed, the file proves to the next one that the pause was ringside's, so that the
// guest may go on. The guardian (vmm/qemu/guardian.h) removes the file when it has let the guest
// go. Used by the machines that have a monitor. Does not: prove a pause if the file is another
// user's. If no file can be written, a pause counts as the owner's.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace ringside::vmm {

class PauseMark {
 public:
  /// For the machine of this process.
  explicit PauseMark(pid_t machine);
  /// Removes it if the machine has ended.
  ~PauseMark();
  PauseMark(const PauseMark&) = delete;
  PauseMark& operator=(const PauseMark&) = delete;

  /// Before the guest is stopped.
  void set() const;
  /// After it was let go, or once it is seen to run.
  void remove() const;
  /// Empty where there is no folder for it.
  const std::string& path() const { return path_; }
  /// The ringside that has set it and has ended; empty where there is no mark, or it lives.
  std::optional<pid_t> left_by() const;

 private:
  const pid_t machine_;
  const std::optional<std::uint64_t> start_;  // of the machine's process
  std::string path_;
};

}  // namespace ringside::vmm
