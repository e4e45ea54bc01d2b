// A QEMU's monitor by its QMP socket. Such a socket has one client at a time.
// Lock: one, for a command at a time; no other lock is taken under it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "vmm/attach/monitor/monitor.h"

namespace ringside::vmm {

class MonitorSocket final : public Monitor {
 public:
  /// Connects and greets. The error is one line that names `path` and the reason: no socket, nobody
  /// listens, no permission, another client (which one), or a peer that does not speak QMP.
  /// `timeout` is for each answer; finding out who holds a silent socket is included in it. After a
  /// command without an answer, later commands wait for a second at most, until one is answered.
  static Result<std::unique_ptr<MonitorSocket>> connect(
      const std::string& path, std::chrono::milliseconds timeout = std::chrono::seconds(30));

  /// Without connecting: Io, naming him, when there is a client already.
  static Result<void> check_free(const std::string& path);
  /// Without connecting: the process that listens at `path`; empty when none that we may see does.
  static std::optional<pid_t> find_listener(const std::string& path);

  /// The process that listens there, as the kernel says.
  pid_t pid() const { return pid_; }
  /// Our end, for the process that goes on when we die.
  int fd() const { return qmp_.fd(); }

  using Monitor::execute;
  Result<nlohmann::json> execute(std::string_view command,
                                 const nlohmann::json& arguments) override;
  Result<void> pass_descriptor(std::string_view name, int descriptor) override;
  int event_fd() const override { return ready_.get(); }
  Result<std::vector<QmpEvent>> take_events() override;

 private:
  MonitorSocket(UniqueFd fd, pid_t pid, std::chrono::milliseconds timeout)
      : pid_(pid), timeout_(timeout), qmp_(std::move(fd)) {}
  Result<void> make_events();
  void collect_events();
  template <typename T>
  Result<T> answered(Result<T> answer);
  std::chrono::milliseconds timeout() const;

  const pid_t pid_;
  const std::chrono::milliseconds timeout_;
  UniqueFd ready_;    // an epoll of the two below
  UniqueFd arrived_;  // an eventfd: events came beside an answer
  std::mutex mutex_;
  QmpClient qmp_;
  bool silent_ = false;  // the last command had no answer in time
  std::vector<QmpEvent> events_;
};

}  // namespace ringside::vmm
