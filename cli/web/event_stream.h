// The events for one open page, as Server-Sent Events. Programs put events in, the page's
// connection takes them out. A browser that is slow costs no memory: beyond a limit events are
// refused, and the one that puts them in counts what it left out. Of a "latest" event only the
// newest of its name waits.
// Threads: any.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "vmm/base/unique_fd.h"

namespace ringside::cli {

class EventStream {
 public:
  EventStream();
  /// False, and nothing is added, if the page is gone, or too much waits and it is not `urgent`.
  bool add(std::string_view event, bool urgent = false);
  /// Takes the place of the event of that name that waits.
  void set_latest(const std::string& name, std::string event);
  /// The waiting events of names that begin so keep their place before what is added next.
  void settle(std::string_view prefix);

  /// For the connection's thread: waits until there is something, and fills the buffer. 0 when the
  /// stream was closed, or the peer of `connection` has gone.
  std::size_t read(char* buffer, std::size_t size, int connection);
  void close();
  bool is_closed() const;

 private:
  void append(std::string_view event);

  mutable std::mutex mutex_;
  UniqueFd changed_;     // an eventfd, so that poll() waits for it and the connection
  std::string waiting_;  // in SSE's form, from `taken_` on
  std::size_t taken_ = 0;
  std::map<std::string, std::string, std::less<>> latest_;
  bool closed_ = false;
};

}  // namespace ringside::cli
