#include "cli/guest/shell.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/guest/spawn_child.h"
#include "vmm/base/await_child.h"

namespace ringside::cli {

Result<int> run_in_shell(const std::string& command, int output_fd) {
  const std::string words[] = {"sh", "-c", command};
  pid_t child = 0;
  if (const int failed = spawn(child, "/bin/sh", words, STDIN_FILENO, output_fd); failed != 0) {
    return fail(ErrorCode::Io, fmt::format("cannot run /bin/sh: {}", std::strerror(failed)));
  }
  const auto status = await_child(child);
  if (!status) {
    return fail(ErrorCode::Io, fmt::format("cannot wait for /bin/sh: {}", std::strerror(errno)));
  }
  return *status;
}

}  // namespace ringside::cli
