// QMP: lines to messages, messages to answers and events.
#include "vmm/qemu/qmp.h"

#include <fmt/format.h>

#include <utility>

#include "vmm/base/bounded_json.h"
#include "vmm/base/printable.h"

namespace ringside::vmm {

namespace {

constexpr std::size_t kMaxLine = 8 << 20;  // the memory map of a guest with hundreds of devices
constexpr unsigned kMaxReadsAtOnce = 4;

}  // namespace

std::string json_text(const nlohmann::json& object, std::string_view key) {
  const auto member = object.find(key);  // end() for whatever is no object
  if (member == object.end()) return {};
  const auto* text = member->get_ptr<const std::string*>();
  return text != nullptr ? *text : std::string();
}

/// The next whole line as an object; empty when none has arrived.
Result<std::optional<nlohmann::json>> QmpClient::next_message() {
  const std::size_t end = pending_.find('\n', searched_);
  if (end == std::string::npos) {
    searched_ = pending_.size();
    if (pending_.size() > kMaxLine) {
      return fail(ErrorCode::Invalid, "QEMU's monitor sent a line without an end");
    }
    return std::nullopt;
  }
  auto message = parse_bounded(std::string_view(pending_).substr(0, end));
  pending_.erase(0, end + 1);
  searched_ = 0;
  if (!message.is_object()) {
    return fail(ErrorCode::Invalid, "QEMU's monitor sent something that is no JSON object");
  }
  return message;
}

Result<nlohmann::json> QmpClient::await_message(Deadline deadline) {
  for (;;) {
    auto message = TRY(next_message());
    if (message) return std::move(*message);
    TRY(socket_.receive(pending_, deadline));
  }
}

bool QmpClient::keep_if_event(nlohmann::json& message) {
  std::string name = json_text(message, "event");
  if (name.empty()) return false;
  auto data = nlohmann::json::object();
  const auto member = message.find("data");
  if (member != message.end() && member->is_object()) data = std::move(*member);
  if (events_.size() == kMaxEvents) events_.pop_front();
  events_.push_back({std::move(name), std::move(data)});
  return true;
}

Result<void> QmpClient::handshake(std::chrono::milliseconds timeout) {
  const Deadline deadline = std::chrono::steady_clock::now() + timeout;
  const auto greeting = TRY(await_message(deadline));
  if (!greeting.contains("QMP")) {
    return fail(ErrorCode::Invalid, "QEMU's monitor did not send its greeting");
  }
  TRY(execute("qmp_capabilities", timeout));
  return {};
}

/// One line, with the next number.
std::string QmpClient::request(std::string_view command, const nlohmann::json& arguments) {
  const std::uint64_t id = ++last_id_;
  if (arguments.empty()) return fmt::format("{{\"execute\": \"{}\", \"id\": {}}}\n", command, id);
  return fmt::format("{{\"execute\": \"{}\", \"arguments\": {}, \"id\": {}}}\n", command,
                     arguments.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), id);
}

Result<nlohmann::json> QmpClient::execute(std::string_view command, const nlohmann::json& arguments,
                                          std::chrono::milliseconds timeout) {
  const Deadline deadline = std::chrono::steady_clock::now() + timeout;
  TRY(socket_.send(request(command, arguments), deadline));
  return await_answer(command, deadline);
}

Result<void> QmpClient::pass_descriptor(std::string_view name, int descriptor,
                                        std::chrono::milliseconds timeout) {
  const Deadline deadline = std::chrono::steady_clock::now() + timeout;
  const std::string line = request("getfd", {{"fdname", std::string(name)}});
  TRY(socket_.send_descriptor(descriptor, line, deadline));
  TRY(await_answer("getfd", deadline));
  return {};
}

/// The answer to the last request.
Result<nlohmann::json> QmpClient::await_answer(std::string_view command, Deadline deadline) {
  for (;;) {
    auto message = TRY(await_message(deadline));
    if (keep_if_event(message)) continue;
    // An answer without our id means that QEMU could not even parse the request.
    const auto answered = message.find("id");
    if (answered != message.end() && *answered != last_id_)
      continue;  // to a request given up earlier
    const auto error = message.find("error");
    if (error != message.end()) {
      return fail(ErrorCode::Invalid, fmt::format("QEMU refused {}: {:.200}", command,
                                                  printable(json_text(*error, "desc"))));
    }
    const auto value = message.find("return");
    if (value == message.end()) {
      return fail(ErrorCode::Invalid,
                  fmt::format("QEMU's monitor answered {} with neither value nor error", command));
    }
    return std::move(*value);
  }
}

Result<void> QmpClient::take_in() {
  for (unsigned reads = 0;; ++reads) {
    for (;;) {
      auto message = TRY(next_message());
      if (!message) break;
      keep_if_event(*message);
    }
    if (reads == kMaxReadsAtOnce) return {};
    const bool got = TRY(socket_.receive_now(pending_));
    if (!got) return {};
  }
}

std::optional<QmpEvent> QmpClient::next_event() {
  if (events_.empty()) return std::nullopt;
  QmpEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

void QemuEnd::note(const QmpEvent& event) {
  if (event.name == "GUEST_PANICKED") panicked_ = true;
  if (event.name == "SHUTDOWN") shutdown_reason_ = json_text(event.data, "reason");
}

MachineState QemuEnd::judge(std::string_view console) const {
  if (panicked_ || shutdown_reason_ == "guest-panic") return MachineState::Panicked;
  if (shutdown_reason_ == "guest-shutdown") return MachineState::PoweredOff;
  if (shutdown_reason_ != "guest-reset") return MachineState::Died;
  const bool panic_text = console.find("Kernel panic - not syncing") != std::string_view::npos;
  return panic_text ? MachineState::Panicked : MachineState::Rebooted;
}

}  // namespace ringside::vmm
