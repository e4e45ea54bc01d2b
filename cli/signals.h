// SIGINT, SIGTERM and SIGHUP as a descriptor for the session's poll loop.
#pragma once

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::cli {

class Signals {
 public:
  /// Blocks the signals in this thread and all that it starts from now on; ignores SIGPIPE, whose
  /// news come as EPIPE. Before any thread is started.
  static Result<Signals> block();

  /// Readable once a signal came.
  int fd() const { return fd_.get(); }
  /// Takes a signal that came; false when there is none.
  bool take();
  /// From now on the next signal ends the process at once: the user's second wish is an order.
  void restore_defaults();

 private:
  explicit Signals(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace ringside::cli
