// In this file, top to bottom: events, the domain (connecting, one call), a search for a libvirt
// that was lost, the process, commands.
// libvirt waits for an answer of QEMU's for as long as it takes, so each command is a thread's, and
// one that does not come back in time is given up with its thread.
#include "vmm/attach/monitor/libvirt_monitor.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "vmm/attach/host/host_process.h"
#include "vmm/attach/monitor/libvirt_api.h"
#include "vmm/base/bounded_json.h"
#include "vmm/base/printable.h"
#include "vmm/base/process.h"
#include "vmm/base/unique_fd.h"

namespace ringside::vmm {
namespace {

constexpr std::size_t kLongestAnswer = 16 << 20;
constexpr std::chrono::milliseconds kSearchEvery(200);

/// On a thread that is given up, with all that `ask` holds, when the answer does not come in time:
/// then empty.
template <typename Ask>
std::optional<Result<std::string>> ask_in_time(Ask ask, std::chrono::milliseconds timeout) {
  auto promise = std::make_shared<std::promise<Result<std::string>>>();
  auto answered = promise->get_future();
  std::thread([ask = std::move(ask), promise] { promise->set_value(ask()); }).detach();
  if (answered.wait_for(timeout) != std::future_status::ready) return std::nullopt;
  return answered.get();
}

}  // namespace

/// Where events go, of all connections of a monitor.
struct LibvirtMonitor::Inbox {
  void keep(const char* event, const char* details);

  const UniqueFd arrived{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex mutex;  // what follows
  std::vector<QmpEvent> events;
};

void LibvirtMonitor::Inbox::keep(const char* event, const char* details) {
  if (event == nullptr) return;
  auto data = parse_bounded(details != nullptr ? details : "");
  const std::lock_guard lock(mutex);
  add_event(events, {event, data.is_object() ? std::move(data) : nlohmann::json::object()});
  raise_event(arrived);
}

/// A domain by one connection.
struct LibvirtMonitor::Domain {
  /// Held by libvirt's callbacks, for as long as libvirt wants it.
  struct Wire {
    explicit Wire(std::shared_ptr<Inbox> to) : inbox(std::move(to)) {}
    const std::shared_ptr<Inbox> inbox;
    std::atomic<bool> closed{false};
  };
  Domain(std::shared_ptr<LibvirtApi> library, std::shared_ptr<Inbox> inbox)
      : api(std::move(library)), wire(std::make_shared<Wire>(std::move(inbox))) {}
  ~Domain();
  Result<void> open(const DomainTarget& target);
  Result<void> find(const DomainTarget& target);
  std::vector<std::string> all_names() const;
  Result<void> watch();
  /// Whether its libvirt has gone: a call that fails would never come to anything again.
  bool is_lost() const { return wire->closed.load(std::memory_order_acquire); }
  Result<std::string> command(const std::string& request, int descriptor);
  std::string state_name() const;
  /// Of a stop that nobody has asked libvirt for, as ours are, it knows no reason.
  bool is_paused_by_owner() const {
    return state == VIR_DOMAIN_PAUSED && reason != VIR_DOMAIN_PAUSED_UNKNOWN;
  }

  static void delete_wire(void* wire) { delete static_cast<std::shared_ptr<Wire>*>(wire); }
  static void note_close(virConnectPtr, int, void* wire);
  static void note_event(virConnectPtr, virDomainPtr, const char* event, long long, unsigned,
                         const char* details, void* wire);

  const std::shared_ptr<LibvirtApi> api;
  const std::shared_ptr<Wire> wire;
  virConnectPtr connection = nullptr;
  virDomainPtr domain = nullptr;
  int event_id = -1;
  bool has_close_callback = false;
  int state = VIR_DOMAIN_NOSTATE, reason = 0;  // when it was found
  std::string name, uuid, uri;
};

LibvirtMonitor::Domain::~Domain() {
  if (event_id >= 0) api->virConnectDomainQemuMonitorEventDeregister(connection, event_id);
  if (has_close_callback) api->virConnectUnregisterCloseCallback(connection, note_close);
  if (domain != nullptr) api->virDomainFree(domain);
  if (connection != nullptr) api->virConnectClose(connection);
}

Result<void> LibvirtMonitor::Domain::open(const DomainTarget& target) {
  // Nobody can be asked for a password here.
  virConnectAuth no_questions{};
  no_questions.cb = [](virConnectCredentialPtr, unsigned, void*) { return -1; };
  connection =
      api->virConnectOpenAuth(target.uri.empty() ? nullptr : target.uri.c_str(), &no_questions, 0);
  if (connection == nullptr) {
    const std::string why = api->last_error();
    // libvirt has no code of its own for it: the text ends with the system's.
    const bool is_forbidden = why.ends_with(std::strerror(EACCES));
    return fail(
        ErrorCode::Io,
        fmt::format(
            "{}: libvirt{} cannot be connected to: {}; {}, or name qmp:PATH or pid:N",
            printable(target.domain), target.uri.empty() ? "" : " at " + printable(target.uri), why,
            is_forbidden ? "be root, or in the group that may use that socket" : "start libvirtd"));
  }
  char* const said = api->virConnectGetURI(connection);
  if (said != nullptr) uri = printable(said);
  free(said);
  const char* const type = api->virConnectGetType(connection);
  if (type != nullptr && std::strcmp(type, "QEMU") == 0) return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("{} has no QEMU domains: give qemu:///system?name=NAME", uri));
}

std::vector<std::string> LibvirtMonitor::Domain::all_names() const {
  virDomainPtr* all = nullptr;
  const int count = api->virConnectListAllDomains(connection, &all, 0);
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    const char* const one = api->virDomainGetName(all[i]);
    if (one != nullptr) names.emplace_back(one);
    api->virDomainFree(all[i]);
  }
  free(all);
  return names;
}

Result<void> LibvirtMonitor::Domain::find(const DomainTarget& target) {
  domain = api->virDomainLookupByName(connection, target.domain.c_str());
  if (domain == nullptr) {
    domain = api->virDomainLookupByUUIDString(connection, target.domain.c_str());
  }
  if (domain == nullptr) {
    return fail(ErrorCode::NotFound, no_such_domain(uri, target, all_names()));
  }
  std::array<char, VIR_UUID_STRING_BUFLEN> text{};
  if (api->virDomainGetUUIDString(domain, text.data()) == 0) uuid = text.data();
  const char* const own_name = api->virDomainGetName(domain);
  if (own_name != nullptr) name = printable(own_name);
  if (api->virDomainGetState(domain, &state, &reason, 0) != 0) {
    return fail(ErrorCode::Io,
                fmt::format("libvirt does not tell the state of {}: {}", name, api->last_error()));
  }
  if (state != VIR_DOMAIN_SHUTOFF) return {};
  return fail(ErrorCode::NotFound,
              fmt::format("domain {} is shut off: start it with 'virsh start'", name));
}

std::string LibvirtMonitor::Domain::state_name() const {
  switch (state) {
    case VIR_DOMAIN_RUNNING:
    case VIR_DOMAIN_BLOCKED: return "running";
    case VIR_DOMAIN_PAUSED: return "paused";
    case VIR_DOMAIN_SHUTDOWN: return "shutdown";
    case VIR_DOMAIN_CRASHED: return "guest-panicked";
    case VIR_DOMAIN_PMSUSPENDED: return "suspended";
    default: return "unknown";
  }
}

void LibvirtMonitor::Domain::note_close(virConnectPtr, int, void* wire) {
  const auto& closed = *static_cast<std::shared_ptr<Wire>*>(wire);
  closed->closed.store(true, std::memory_order_release);
  raise_event(closed->inbox->arrived);
}

void LibvirtMonitor::Domain::note_event(virConnectPtr, virDomainPtr, const char* event, long long,
                                        unsigned, const char* details, void* wire) {
  (*static_cast<std::shared_ptr<Wire>*>(wire))->inbox->keep(event, details);
}

/// The callbacks come on the event thread.
Result<void> LibvirtMonitor::Domain::watch() {
  auto for_close = std::make_unique<std::shared_ptr<Wire>>(wire);
  has_close_callback = api->virConnectRegisterCloseCallback(connection, note_close, for_close.get(),
                                                            delete_wire) == 0;
  if (has_close_callback) (void)for_close.release();
  auto for_events = std::make_unique<std::shared_ptr<Wire>>(wire);
  event_id = api->virConnectDomainQemuMonitorEventRegister(connection, domain, nullptr, note_event,
                                                           for_events.get(), delete_wire, 0);
  if (event_id >= 0) (void)for_events.release();
  if (wire->inbox->arrived && has_close_callback && event_id >= 0) return {};
  return fail(ErrorCode::Io,
              fmt::format("libvirt tells no events of {}: {}", name, api->last_error()));
}

/// Waits for QEMU. The answer's text.
Result<std::string> LibvirtMonitor::Domain::command(const std::string& request, int descriptor) {
  char* answer = nullptr;
  const unsigned count = descriptor < 0 ? 0 : 1;
  const int done = api->virDomainQemuMonitorCommandWithFiles(domain, request.c_str(), count,
                                                             count == 0 ? nullptr : &descriptor,
                                                             nullptr, nullptr, &answer, 0);
  if (done != 0 || answer == nullptr) {
    std::string why = "libvirt passes no command on: " + api->last_error();
    if (api->virConnectIsAlive(connection) != 1) {
      wire->closed.store(true, std::memory_order_release);
      raise_event(wire->inbox->arrived);
    }
    return fail(is_lost() ? ErrorCode::NotFound : ErrorCode::Io, std::move(why));
  }
  std::string text(answer, std::min(std::strlen(answer), kLongestAnswer));
  free(answer);
  return text;
}

/// Looks for a libvirt that has gone, until it is found or nobody wants it any more.
struct LibvirtMonitor::Search {
  /// On a thread of its own, which ends by itself: a call of libvirt's may take its time.
  static std::shared_ptr<Search> start(std::shared_ptr<Domain> lost, DomainTarget target);

  std::mutex mutex;  // what follows
  std::condition_variable ended;
  bool is_over = false;
  std::shared_ptr<Domain> found;

 private:
  void run(const std::shared_ptr<LibvirtApi>& api, const std::shared_ptr<Inbox>& inbox,
           const DomainTarget& target);
};

std::shared_ptr<LibvirtMonitor::Search> LibvirtMonitor::Search::start(std::shared_ptr<Domain> lost,
                                                                      DomainTarget target) {
  auto search = std::make_shared<Search>();
  const AllSignalsBlocked blocked;
  std::thread([search, lost = std::move(lost), target = std::move(target)]() mutable {
    const auto api = lost->api;
    const auto inbox = lost->wire->inbox;
    lost.reset();
    search->run(api, inbox, target);
  }).detach();
  return search;
}

void LibvirtMonitor::Search::run(const std::shared_ptr<LibvirtApi>& api,
                                 const std::shared_ptr<Inbox>& inbox, const DomainTarget& target) {
  for (;;) {
    auto domain = std::make_shared<Domain>(api, inbox);
    const bool is_there =
        domain->open(target) && domain->find(target) && domain->watch() && !domain->is_lost();
    std::unique_lock lock(mutex);
    if (is_there && !is_over) {
      found = std::move(domain);
      return raise_event(inbox->arrived);
    }
    if (ended.wait_for(lock, kSearchEvery, [this] { return is_over; })) return;
  }
}

LibvirtMonitor::LibvirtMonitor(std::shared_ptr<Domain> domain, const DomainTarget& target,
                               std::chrono::milliseconds timeout)
    : timeout_(timeout),
      name_(domain->name),
      uuid_(domain->uuid),
      uri_(target.uri),
      is_paused_by_owner_(domain->is_paused_by_owner()),
      inbox_(domain->wire->inbox),
      domain_(std::move(domain)) {}

LibvirtMonitor::~LibvirtMonitor() {
  if (!search_) return;
  const std::lock_guard lock(search_->mutex);
  search_->is_over = true;
  search_->ended.notify_all();
}

Result<std::unique_ptr<LibvirtMonitor>> LibvirtMonitor::connect(const DomainTarget& target,
                                                                std::chrono::milliseconds timeout) {
  auto domain = std::make_shared<Domain>(TRY(LibvirtApi::open()), std::make_shared<Inbox>());
  TRY(domain->open(target));
  TRY(domain->find(target));
  TRY(domain->watch());
  return std::unique_ptr<LibvirtMonitor>(new LibvirtMonitor(std::move(domain), target, timeout));
}

/// The domain by the connection that there is; null while there is none.
std::shared_ptr<LibvirtMonitor::Domain> LibvirtMonitor::current_domain() {
  const std::lock_guard lock(connection_mutex_);
  if (domain_ && domain_->is_lost()) {
    search_ = Search::start(std::exchange(domain_, nullptr), {uri_, uuid_});
    changes_.push_back(Change::Lost);
  }
  if (domain_) return domain_;
  const std::lock_guard searching(search_->mutex);
  if (!search_->found) return nullptr;
  domain_ = std::move(search_->found);
  changes_.push_back(Change::MadeAnew);
  return domain_;
}

std::vector<Monitor::Change> LibvirtMonitor::take_changes() {
  (void)current_domain();
  const std::lock_guard lock(connection_mutex_);
  return std::exchange(changes_, {});
}

Result<std::string> LibvirtMonitor::find_state(const DomainTarget& target,
                                               std::chrono::milliseconds timeout) {
  const auto ask = [target]() -> Result<std::string> {
    Domain domain(TRY(LibvirtApi::open()), std::make_shared<Inbox>());
    TRY(domain.open(target));
    TRY(domain.find(target));
    return domain.state_name();
  };
  auto answer = ask_in_time(ask, timeout);
  if (!answer) return fail(ErrorCode::MachineGone, "libvirt does not answer in time");
  return std::move(*answer);
}

/// libvirt gives each QEMU its domain's UUID on the command line. A QEMU is not asked for its own
/// process: it could name another's.
Result<pid_t> LibvirtMonitor::find_process() const {
  std::optional<pid_t> found;
  for (const HostProcess& process : HostProcess::all()) {
    const std::vector<std::string> words = process.command_line();
    const auto option = std::ranges::find(words, "-uuid");
    if (option == words.end() || option + 1 == words.end() || option[1] != uuid_) continue;
    if (found) {
      return fail(ErrorCode::Invalid,
                  fmt::format("processes {} and {} both call themselves domain {}", *found,
                              process.pid(), name_));
    }
    found = process.pid();
  }
  if (found) return *found;
  return fail(ErrorCode::NotFound,
              fmt::format("the QEMU of domain {} does not run on this host, or is not to be seen "
                          "from here",
                          name_));
}

Result<nlohmann::json> LibvirtMonitor::send(std::string_view command,
                                            const nlohmann::json& arguments, int descriptor) {
  const std::lock_guard lock(mutex_);
  if (silent_) return fail(ErrorCode::MachineGone, "libvirt does not answer any more");
  nlohmann::json request{{"execute", std::string(command)}};
  if (!arguments.empty()) request["arguments"] = arguments;
  const auto connected = current_domain();
  if (!connected) return fail(ErrorCode::NotFound, "libvirt has ended, and is not back yet");
  const auto ask = [domain = connected, descriptor,
                    line = request.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)] {
    return domain->command(line, descriptor);
  };
  auto answered = ask_in_time(ask, timeout_);
  if (!answered) {
    silent_ = true;
    return fail(ErrorCode::MachineGone, fmt::format("libvirt did not answer {} in time", command));
  }
  const std::string text = TRY(std::move(*answered));
  const auto answer = parse_bounded(text);
  if (!answer.is_object()) {
    return fail(ErrorCode::Invalid, "libvirt's answer is no JSON object");
  }
  const auto error = answer.find("error");
  if (error != answer.end()) {
    return fail(ErrorCode::Invalid, fmt::format("QEMU refused {}: {:.200}", command,
                                                printable(json_text(*error, "desc"))));
  }
  const auto value = answer.find("return");
  if (value != answer.end()) return *value;
  return fail(ErrorCode::Invalid,
              fmt::format("QEMU answered {} with neither value nor error", command));
}

Result<nlohmann::json> LibvirtMonitor::execute(std::string_view command,
                                               const nlohmann::json& arguments) {
  return send(command, arguments, -1);
}

Result<void> LibvirtMonitor::pass_descriptor(std::string_view name, int descriptor) {
  TRY(send("getfd", {{"fdname", std::string(name)}}, descriptor));
  return {};
}

int LibvirtMonitor::event_fd() const {
  return inbox_->arrived.get();
}

Result<std::vector<QmpEvent>> LibvirtMonitor::take_events() {
  const std::lock_guard lock(inbox_->mutex);
  std::uint64_t count;
  (void)!read(inbox_->arrived.get(), &count, sizeof count);  // fails when nothing had come
  return std::exchange(inbox_->events, {});
}

}  // namespace ringside::vmm
