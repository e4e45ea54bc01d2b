// Debug information of a program or library by its build id, from the servers that the user has
// named in the variable DEBUGINFOD_URLS (debuginfod(8)). The work is libdebuginfod's, which keeps
// files in a cache of the user's. It is loaded when the first file is asked for, so that nobody
// pays for it who does not ask, and ringside runs without it. Used by HostFiles. Does not: judge
// whether the file is of that build. Hostile input: the guest chooses the build ids. As many as it
// likes are asked for, but only until a server fails, and a file takes a minute at most. Threads:
// one. Fire context: no.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"

namespace ringside::guest_linux {

class Debuginfod {
 public:
  /// Whether the user has named servers.
  static bool is_wanted();

  struct Limits {
    std::chrono::steady_clock::duration each = std::chrono::minutes(1);  // for one file
    std::size_t files = 1000;
  };
  Debuginfod();
  explicit Debuginfod(const Limits& limits);
  ~Debuginfod();
  Debuginfod(const Debuginfod&) = delete;
  Debuginfod& operator=(const Debuginfod&) = delete;

  /// `build_id`: its bytes. NotFound: no server has it. Any other error is the last: no server is
  /// asked again.
  Result<UniqueFd> find(std::string_view build_id);

 private:
  struct Api;
  Result<void> load();
  Result<UniqueFd> ask(std::string_view build_id);

  const Limits limits_;
  std::unique_ptr<Api> api_;  // null: not loaded yet
  std::size_t asked_ = 0;
  std::string given_up_;  // the last error
};

}  // namespace ringside::guest_linux
