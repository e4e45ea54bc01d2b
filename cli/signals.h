// SIGINT, SIGTERM and SIGHUP as a descriptor for the session's poll loop.
#pragma once

#include <thread>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::cli {

class Signals {
 public:
  /// Blocks the signals in this thread and all that it starts from now on; ignores SIGPIPE, whose
  /// news come as EPIPE. Before any thread is started.
  static Result<Signals> block();
  Signals(Signals&&) = default;
  ~Signals();

  /// Readable once a signal came.
  int fd() const { return fd_.get(); }
  /// Takes a signal that came; false when there is none.
  bool take();
  /// From now on a signal ends the process at once, unless it is the first one: the user's second
  /// wish is an order. Tracing that ends by itself is left as it has to be when the first one
  /// comes.
  void obey_the_second();

 private:
  Signals(UniqueFd fd, UniqueFd stop) : fd_(std::move(fd)), stop_(std::move(stop)) {}

  UniqueFd fd_, stop_;
  bool came_ = false;
  std::jthread second_;  ///< waits until stop_ is readable
};

}  // namespace ringside::cli
