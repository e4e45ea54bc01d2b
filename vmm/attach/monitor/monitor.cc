#include "vmm/attach/monitor/monitor.h"

#include <fmt/format.h>

namespace ringside::vmm {

Result<std::string> Monitor::human(std::string_view line) {
  const nlohmann::json answer =
      TRY(execute("human-monitor-command", {{"command-line", std::string(line)}}));
  const auto* text = answer.get_ptr<const std::string*>();
  if (text == nullptr) {
    return fail(ErrorCode::Invalid, fmt::format("QEMU's monitor answered '{}' without text", line));
  }
  return *text;
}

}  // namespace ringside::vmm
