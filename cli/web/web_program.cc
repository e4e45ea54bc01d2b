// In this file, top to bottom: its command line, records, the file, the thread that reads.
#include "cli/web/web_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/guest/host_program.h"
#include "cli/web/line_splitter.h"
#include "vmm/base/process.h"

namespace ringside::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// A record with more is left to the file; one with more than the second is none.
constexpr std::size_t kMostShown = 4 << 20, kMostRecord = 256 << 20;
constexpr std::uint64_t kMostSaved = std::uint64_t{1} << 30;
/// A page that shows more can no longer be operated.
constexpr std::size_t kRecordsEverySecond = 5000, kBytesEverySecond = 3 << 20;
/// Lines on stderr, of which it shows the last 200.
constexpr std::size_t kMessagesEverySecond = 200;
/// As a second Ctrl-C, for one that does not end; then it is killed.
constexpr std::chrono::seconds kInsistAfter{15}, kKillAfter{30};
/// Of a record that no probe made. No text of a guest can look so: JSON escapes quotes.
constexpr std::string_view kInternal =
    R"("id":0,"provider":"dtrace","module":"INTERNAL","function":"INTERNAL","name":")";

std::vector<std::string> words_of(const WebProgram::Order& order) {
  std::vector<std::string> words;
  for (const std::string& target : order.targets) {
    words.emplace_back("--attach");
    words.push_back(target);
  }
  for (const char* word : {"-O", "jsonl", "-x", "sealed", "-x", "maxslow=95", "-x", "threads", "-x",
                           "switchrate=20ms", "-x", "meanwhile=500ms", "-s", "/dev/stdin", "--"}) {
    words.emplace_back(word);
  }
  words.insert(words.end(), order.arguments.begin(), order.arguments.end());
  return words;
}

/// The name of the pseudo-probe, empty for records of probes.
std::string_view internal_name(std::string_view line) {
  const std::size_t at = line.find(kInternal);
  if (at == std::string_view::npos) return {};
  const std::string_view name = line.substr(at + kInternal.size());
  return name.substr(0, name.find('"'));
}

std::string text_event(std::string_view kind, unsigned program, std::string_view text) {
  const nlohmann::json event{{"kind", kind}, {"program", program}, {"text", text}};
  return event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<UniqueFd> nameless_file() {
  const char* const folder = std::getenv("TMPDIR");
  UniqueFd file(
      ::open(folder == nullptr ? "/var/tmp" : folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  return fail(ErrorCode::Io,
              fmt::format("no file for the records in {}: {}; TMPDIR names another folder",
                          folder == nullptr ? "/var/tmp" : folder, std::strerror(errno)));
}

}  // namespace

/// How much a page gets in a second.
class WebProgram::Pace {
 public:
  explicit Pace(std::size_t most) : most_(most) {}
  bool allows(std::size_t bytes) {
    const Clock::time_point now = Clock::now();
    if (now - begun_ >= std::chrono::seconds(1)) {
      begun_ = now;
      records_ = bytes_ = 0;
    }
    if (records_ >= most_ || (records_ != 0 && bytes_ + bytes > kBytesEverySecond)) return false;
    ++records_;
    bytes_ += bytes;
    return true;
  }

 private:
  const std::size_t most_;
  Clock::time_point begun_{};
  std::size_t records_ = 0, bytes_ = 0;
};

Result<std::shared_ptr<WebProgram>> WebProgram::start(unsigned number, const Order& order,
                                                      std::shared_ptr<EventStream> page) {
  UniqueFd saved = TRY(nameless_file());
  const UniqueFd d = TRY(memory_file(order.d));
  OwnCommand command = TRY(start_own_command(words_of(order), d.get()));
  return std::make_shared<WebProgram>(number, std::move(command), std::move(saved),
                                      std::move(page));
}

WebProgram::WebProgram(unsigned number, OwnCommand command, UniqueFd saved,
                       std::shared_ptr<EventStream> page)
    : number_(number),
      command_(std::move(command)),
      page_(std::move(page)),
      saved_(std::move(saved)),
      thread_([this] { read_all(); }) {}

WebProgram::~WebProgram() {
  stop();
  join();
}

void WebProgram::stop() {
  if (!stopped_.exchange(true)) signal_pidfd(command_.process.get(), SIGTERM);
}

void WebProgram::join() {
  if (thread_.joinable()) thread_.join();
}

void WebProgram::take_record(std::string_view line, std::size_t length, bool is_result,
                             Pace& pace) {
  const bool is_long = length > kMostShown;
  ++records_;
  if (is_result || is_long) page_->settle(fmt::format("{}/", number_));
  if (is_long) {
    if (line.empty()) take_message("a record of more than 256 MiB is not saved");
    page_->add(fmt::format(R"({{"kind":"large","program":{},"bytes":{}}})", number_, length), true);
    return;
  }
  const bool shown =
      (is_result || pace.allows(length)) &&
      page_->add(fmt::format(R"({{"kind":"record","program":{},"record":{}}})", number_, line),
                 is_result);
  if (!shown) ++left_out_;
}

/// It is not saved: the final one will be.
void WebProgram::take_meanwhile(std::string_view line) {
  const std::size_t begin = line.find(R"("machine":")");
  const std::size_t end = line.find(R"(,"cpu":)");
  const std::string machine(begin < end ? line.substr(begin, end - begin) : "");
  page_->set_latest(fmt::format("{}/{}", number_, machine),
                    fmt::format(R"({{"kind":"record","program":{},"record":{}}})", number_, line));
  const std::lock_guard lock(mutex_);
  latest_[machine] = line;
}

void WebProgram::take_message(std::string_view line) {
  page_->add(text_event("message", number_, line), true);
}

/// A line that the program writes to stderr: there may be one for each firing.
void WebProgram::take_stderr(std::string_view line, Pace& pace) {
  const bool shown = pace.allows(line.size()) && page_->add(text_event("message", number_, line));
  if (!shown && messages_left_out_++ == 0)
    take_message("more lines come than can be shown; the end tells how many");
}

void WebProgram::keep(std::string_view text) {
  if (text.empty()) return;
  const std::lock_guard lock(mutex_);
  if (saving_ended_) return;
  std::string why;
  if (saved_bytes_ + text.size() > kMostSaved) {
    why = "1 GiB of records is saved";
  } else if (const int problem = write_whole(saved_.get(), text); problem != 0) {
    why = fmt::format("records cannot be saved: {}", std::strerror(problem));
  } else {
    saved_bytes_ += text.size();
  }
  if (why.empty()) return;
  saving_ended_ = true;
  take_message(why + "; later ones are only shown");
}

std::vector<std::string> WebProgram::latest() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> records;
  for (const auto& [machine, record] : latest_) records.push_back(record);
  return records;
}

Result<UniqueFd> WebProgram::saved() const {
  UniqueFd copy = TRY(nameless_file());
  const auto aggregations = runs_ ? latest() : std::vector<std::string>();
  std::uint64_t left = 0;
  {
    const std::lock_guard lock(mutex_);
    left = saved_bytes_;
  }
  // Written bytes stay as they are, so no lock is needed to read them.
  for (off_t at = 0; left != 0;) {
    const ssize_t sent = ::sendfile(copy.get(), saved_.get(), &at, left);
    if (sent <= 0)
      return fail(ErrorCode::Io, fmt::format("no copy of the records: {}", std::strerror(errno)));
    left -= static_cast<std::uint64_t>(sent);
  }
  for (const std::string& record : aggregations) {
    if (const int problem = write_whole(copy.get(), record + '\n'); problem != 0)
      return fail(ErrorCode::Io, fmt::format("no copy of the records: {}", std::strerror(problem)));
  }
  ::lseek(copy.get(), 0, SEEK_SET);
  return copy;
}

void WebProgram::tell_left_out() {
  const std::uint64_t now = left_out_;
  if (std::exchange(told_left_out_, now) == now) return;
  page_->add(fmt::format(R"({{"kind":"left-out","program":{},"count":{}}})", number_, now), true);
}

void WebProgram::end_by_force(Clock::time_point now) {
  if (!stopped_) return;
  if (asked_ == Clock::time_point()) asked_ = now;
  const int wanted = now - asked_ >= kKillAfter ? 2 : now - asked_ >= kInsistAfter ? 1 : 0;
  if (wanted <= forced_) return;
  forced_ = wanted;
  signal_pidfd(command_.process.get(), wanted == 2 ? SIGKILL : SIGTERM);
}

void WebProgram::tell_end(int status) {
  tell_left_out();
  page_->settle(fmt::format("{}/", number_));
  page_->add(fmt::format(R"({{"kind":"end","program":{},"status":{}}})", number_, status), true);
}

void WebProgram::read_all() {
  read_streams();
  const auto status = await_child(command_.pid);
  runs_ = false;
  tell_end(status ? shell_status(*status) : -1);
}

void WebProgram::read_streams() {
  constexpr int kLookMs = 500;
  Pace pace(kRecordsEverySecond), message_pace(kMessagesEverySecond);
  // The records of a piece that was read go to the file at once.
  std::string to_save;
  LineSplitter messages(
      64 << 10, [&](std::string_view line, std::size_t) { take_stderr(line, message_pace); });
  LineSplitter lines(kMostRecord, [&](std::string_view line, std::size_t length) {
    const std::string_view internal = internal_name(line);
    if (internal == "MEANWHILE") return take_meanwhile(line);
    take_record(line, length, !internal.empty(), pace);
    if (!line.empty()) (to_save += line) += '\n';
  });
  std::array<pollfd, 2> fds{
      {{command_.output.get(), POLLIN, 0}, {command_.errors.get(), POLLIN, 0}}};
  std::array<LineSplitter*, 2> splitters{&lines, &messages};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    ::poll(fds.data(), fds.size(), kLookMs);
    for (std::size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents == 0 || fds[i].fd < 0) continue;
      char buffer[64 << 10];
      const ssize_t got = ::read(fds[i].fd, buffer, sizeof buffer);
      if (got > 0) splitters[i]->add({buffer, static_cast<std::size_t>(got)});
      if (got == 0 || (got < 0 && errno != EINTR)) fds[i].fd = -1;
    }
    keep(std::exchange(to_save, {}));
    tell_left_out();
    end_by_force(Clock::now());
  }
  if (messages_left_out_ != 0)
    take_message(fmt::format("{} lines were not shown", messages_left_out_));
  if (lines.is_inside()) take_message("the last record is not whole, and was left out");
}

}  // namespace ringside::cli
