// A file in the user's runtime folder that says that ringside holds a machine's guest paused. If
// ringside is killed, the file proves to the next one that the pause was ringside's, so that the
// guest may go on. The guardian (vmm/qemu/guardian.h) removes the file when it has let the guest
// go. There can be a thousand pauses a second, so the file stays from one to the next, and is empty
// between them. A ringside that is killed then leaves an empty file, which says nothing.
// Used by the machines that have a monitor. Does not: prove a pause if the file is another
// user's. If no file can be written, a pause counts as the owner's.
// Threads: one at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "vmm/base/unique_fd.h"

namespace ringside::vmm {

class PauseMark {
 public:
  /// For the machine of this process.
  explicit PauseMark(pid_t machine);
  /// Removes the file unless it says that a machine which lives is held.
  ~PauseMark();
  PauseMark(const PauseMark&) = delete;
  PauseMark& operator=(const PauseMark&) = delete;

  /// Before the guest is stopped.
  void set();
  /// After it was let go, or once it is seen to run. Another's mark is removed, too, as long as
  /// this one was never set.
  void clear();
  /// Empty where there is no folder for it.
  const std::string& path() const { return path_; }
  /// The ringside that has set it and has ended; empty where there is no mark, or it lives.
  std::optional<pid_t> left_by() const;

 private:
  bool has_file() const;
  void make_file();
  void remove_file() const;

  const pid_t machine_;
  const std::optional<std::uint64_t> start_;  // of the machine's process
  std::string path_;
  UniqueFd file_;       // since set()
  std::string setter_;  // what it says when it is set
  bool is_set_ = false;
};

}  // namespace ringside::vmm
