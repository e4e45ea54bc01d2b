// A file that stands while a ringside holds a machine's guest still, in the user's runtime folder.
// It is proof for the next one: a guest that is paused was paused by a ringside that was killed,
// and may go on. Its guardian (vmm/qemu/guardian.h) removes the file when it has let the guest go.
// Used by the machines that have a monitor. Does not: prove a pause where the file is another
// user's. Where no file can be written there is none, and a pause is the owner's.
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
