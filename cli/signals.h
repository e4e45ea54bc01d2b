// SIGINT, SIGTERM and SIGHUP as a descriptor for the session's poll loop.
#pragma once

#include <string>
#include <thread>
#include <utility>

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
  /// A process that ends so says them before it does; none by default.
  void set_last_words(std::string words) { last_words_ = std::move(words); }

 private:
  Signals(UniqueFd fd, UniqueFd stop) : fd_(std::move(fd)), stop_(std::move(stop)) {}

  UniqueFd fd_, stop_;
  bool came_ = false;
  std::string last_words_;
  std::jthread second_;  ///< waits until stop_ is readable
};

}  // namespace ringside::cli
