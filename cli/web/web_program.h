// A D program that a page runs: a ringside beside the server, with -O jsonl. Each record goes to
// the page as an event and into a file without a name, which is what the page saves and pictures
// are drawn of. Records that are more than a page can take in are counted and left to the file.
// Threads: one of its own reads; all others may call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/web/event_stream.h"
#include "cli/web/own_command.h"
#include "vmm/base/result.h"

namespace ringside::cli {

class WebProgram {
 public:
  struct Order {
    std::vector<std::string> targets, arguments;
    std::string d;
  };
  /// Events go to `page`, with this number. Io: the program cannot be started.
  static Result<std::shared_ptr<WebProgram>> start(unsigned number, const Order& order,
                                                   std::shared_ptr<EventStream> page);
  ~WebProgram();
  WebProgram(const WebProgram&) = delete;
  WebProgram& operator=(const WebProgram&) = delete;

  unsigned number() const { return number_; }
  pid_t pid() const { return command_.pid; }
  bool runs() const { return runs_; }
  std::uint64_t records() const { return records_; }
  std::uint64_t left_out() const { return left_out_; }
  const std::shared_ptr<EventStream>& page() const { return page_; }
  /// Orders it to end; it then takes its probes out, and reports its end to the page.
  void stop();
  /// After stop(): waits until it has ended.
  void join();

  /// The aggregations as they are, a record for each machine.
  std::vector<std::string> latest() const;
  /// The records so far in a file of their own, with the aggregations as they are if it runs.
  Result<UniqueFd> saved() const;

  WebProgram(unsigned number, OwnCommand command, UniqueFd saved,
             std::shared_ptr<EventStream> page);

 private:
  class Pace;

  void read_all();
  void read_streams();
  /// `is_result`: no probe made it.
  void take_record(std::string_view line, std::size_t length, bool is_result, Pace& pace);
  void take_meanwhile(std::string_view line);
  void take_message(std::string_view line);
  void take_stderr(std::string_view line, Pace& pace);
  void keep(std::string_view text);
  void tell_left_out();
  void end_by_force(std::chrono::steady_clock::time_point now);
  void tell_end(int status);

  const unsigned number_;
  const OwnCommand command_;
  const std::shared_ptr<EventStream> page_;
  std::atomic<bool> runs_ = true, stopped_ = false;
  std::atomic<std::uint64_t> records_ = 0, left_out_ = 0;
  std::uint64_t told_left_out_ = 0;                // the thread's
  std::uint64_t messages_left_out_ = 0;            // the thread's
  std::chrono::steady_clock::time_point asked_{};  // the thread's: when it saw the order to end
  int forced_ = 0;                                 // the thread's: how often it insisted
  mutable std::mutex mutex_;                       // of what follows
  UniqueFd saved_;
  std::uint64_t saved_bytes_ = 0;
  bool saving_ended_ = false;
  std::map<std::string, std::string, std::less<>> latest_;  // by machine
  std::thread thread_;
};

}  // namespace ringside::cli
