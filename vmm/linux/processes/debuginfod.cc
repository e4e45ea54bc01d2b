#include "vmm/linux/processes/debuginfod.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "vmm/base/end_order.h"
#include "vmm/base/printable.h"

namespace ringside::guest_linux {

struct Debuginfod::Api {
  decltype(&debuginfod_begin) begin = nullptr;
  decltype(&debuginfod_end) end = nullptr;
  decltype(&debuginfod_find_debuginfo) find = nullptr;
  decltype(&debuginfod_set_progressfn) set_progress = nullptr;
  debuginfod_client* client = nullptr;

  Api() = default;
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;
  ~Api() {
    if (client != nullptr) end(client);
  }
};

namespace {

/// One question. The library asks now and then whether to go on.
struct Question {
  std::chrono::steady_clock::time_point deadline;
  bool is_late = false;
};

/// Of this thread, on which the library calls back.
thread_local Question* question = nullptr;

int go_on(debuginfod_client* client, long part, long whole) {
  (void)client, (void)part, (void)whole;
  question->is_late = std::chrono::steady_clock::now() >= question->deadline;
  return question->is_late || end_order() != EndOrder::None ? 1 : 0;
}

template <class Function>
bool find_in(void* library, const char* name, Function& function) {
  // SAFETY: the library's own header declares the type.
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

bool Debuginfod::is_wanted() {
  const char* const servers = std::getenv(DEBUGINFOD_URLS_ENV_VAR);
  return servers != nullptr && *servers != '\0';
}

Debuginfod::Debuginfod() : Debuginfod(Limits()) {}
Debuginfod::Debuginfod(const Limits& limits) : limits_(limits) {}
Debuginfod::~Debuginfod() = default;

Result<void> Debuginfod::load() {
  void* const library = dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(ErrorCode::Unsupported,
                fmt::format("its library is not to be had ({}): apt-get install libdebuginfod1",
                            printable(dlerror())));
  }
  auto api = std::make_unique<Api>();
  const bool has_all = find_in(library, "debuginfod_begin", api->begin) &&
                       find_in(library, "debuginfod_end", api->end) &&
                       find_in(library, "debuginfod_find_debuginfo", api->find) &&
                       find_in(library, "debuginfod_set_progressfn", api->set_progress);
  if (has_all) api->client = api->begin();
  if (api->client == nullptr) {
    return fail(ErrorCode::Unsupported, "its library is too old, or cannot start: take 0.188");
  }
  api->set_progress(api->client, &go_on);
  api_ = std::move(api);
  return {};
}

Result<UniqueFd> Debuginfod::ask(std::string_view build_id) {
  if (api_ == nullptr) TRY(load());
  Question asked{std::chrono::steady_clock::now() + limits_.each};
  question = &asked;
  const int found =
      api_->find(api_->client, reinterpret_cast<const unsigned char*>(build_id.data()),
                 static_cast<int>(build_id.size()), nullptr);
  question = nullptr;
  if (found >= 0) return UniqueFd(found);
  // One that was left looks as if it had none.
  if (asked.is_late) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limits_.each);
    return fail(ErrorCode::Io, fmt::format("no file came within {} s", seconds.count()));
  }
  if (end_order() != EndOrder::None) return fail(ErrorCode::Io, "interrupted");
  if (found == -ENOENT) return fail(ErrorCode::NotFound, "no server has it");
  return fail(ErrorCode::Io, std::strerror(-found));
}

Result<UniqueFd> Debuginfod::find(std::string_view build_id) {
  if (!given_up_.empty()) return fail(ErrorCode::Io, given_up_);
  if (asked_++ == limits_.files) {
    given_up_ = fmt::format("it was asked for {} files already", limits_.files);
    return fail(ErrorCode::Limit, given_up_);
  }
  auto found = ask(build_id);
  if (!found && found.error().code != ErrorCode::NotFound) given_up_ = found.error().message;
  return found;
}

}  // namespace ringside::guest_linux
