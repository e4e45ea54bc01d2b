// One line on the user's terminal that says what takes so long: "booting debian-6.12 (3 s)". It
// appears after a second, counts seconds, and goes when there is something else to show. If stderr
// is no terminal, nothing is shown. Used by the session; say() writes around it. Threads: show()
// and clear() on the session's, write() on any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace ringside::cli {

class Progress {
 public:
  /// `pace`: how long it waits, and then each time.
  explicit Progress(int fd, std::chrono::milliseconds pace = std::chrono::seconds(1));
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The progress line of stderr.
  static Progress& of_stderr();

  /// Says what is being done from now on. Not before threads may be started.
  void show(std::string what);
  void clear();
  /// Writes `text`, whole lines, in place of what is shown.
  void write(std::string_view text);
  bool is_terminal() const { return is_terminal_; }

 private:
  void run();
  void erase();  // with mutex_ held

  const int fd_;
  const std::chrono::milliseconds pace_;
  const bool is_terminal_;
  std::mutex mutex_;  // what follows
  std::condition_variable changed_;
  std::optional<std::string> what_;  // empty: the thread is to end
  std::chrono::steady_clock::time_point since_;
  bool shown_ = false;
  std::thread thread_;  // of show() and clear() alone
};

}  // namespace ringside::cli
