#include "cli/messages/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "vmm/base/printable.h"

namespace ringside::cli {
namespace {

constexpr std::string_view kErase = "\r\x1b[K";  // the line that the cursor is in

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written <= 0) return;  // nobody is there to read it
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

Progress::Progress(int fd, std::chrono::milliseconds pace)
    : fd_(fd), pace_(pace), is_terminal_(isatty(fd) == 1) {}

Progress& Progress::of_stderr() {
  static Progress progress(STDERR_FILENO);
  return progress;
}

void Progress::show(std::string what) {
  if (!is_terminal_) return;
  {
    const std::lock_guard lock(mutex_);
    erase();
    what_ = std::move(what);
    since_ = std::chrono::steady_clock::now();
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

void Progress::clear() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    erase();
    what_.reset();
  }
  changed_.notify_all();
  thread_.join();
  thread_ = {};
}

void Progress::write(std::string_view text) {
  const std::lock_guard lock(mutex_);
  erase();
  write_all(fd_, text);
}

void Progress::erase() {
  if (std::exchange(shown_, false)) write_all(fd_, kErase);
}

void Progress::run() {
  std::unique_lock lock(mutex_);
  while (what_) {
    const auto begun = since_;
    const bool another = changed_.wait_for(lock, pace_, [&] { return !what_ || since_ != begun; });
    if (another) continue;
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - since_);
    erase();
    write_all(fd_, fmt::format("{} ({} s)", terminal_text(*what_), seconds.count()));
    shown_ = true;
  }
}

}  // namespace ringside::cli
