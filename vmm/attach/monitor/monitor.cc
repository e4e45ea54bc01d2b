#include "vmm/attach/monitor/monitor.h"

#include <fmt/format.h>

#include <utility>

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

void add_event(std::vector<QmpEvent>& waiting, QmpEvent event) {
  if (waiting.size() == kMaxEvents) waiting.erase(waiting.begin());
  waiting.push_back(std::move(event));
}

}  // namespace ringside::vmm
