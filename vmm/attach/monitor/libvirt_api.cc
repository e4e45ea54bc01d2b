#include "vmm/attach/monitor/libvirt_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <mutex>
#include <string_view>

#include "vmm/base/printable.h"
#include "vmm/base/process.h"

namespace ringside::vmm {
namespace {

constexpr int kStopPoll = 100;  // milliseconds; libvirt's event loop can only be woken by an event
constexpr std::size_t kLongestError = 300;

/// The names that libvirt has kept since 2005.
constexpr char kLibrary[] = "libvirt.so.0", kQemuLibrary[] = "libvirt-qemu.so.0";

Result<void*> load_library(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  return fail(ErrorCode::Unsupported,
              fmt::format("libvirt's library is not to be had ({}): apt-get install libvirt0; "
                          "without libvirt, give qmp:PATH or pid:N",
                          printable(dlerror())));
}

template <class Function>
Result<void> find_function(void* library, const char* name, Function& function) {
  // SAFETY: the library's own header declares the type.
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return {};
  return fail(ErrorCode::Unsupported,
              fmt::format("this libvirt has no {}: take libvirt 8.2 or later", name));
}

}  // namespace

Result<std::shared_ptr<LibvirtApi>> LibvirtApi::open() {
  static std::mutex mutex;
  static std::weak_ptr<LibvirtApi> loaded;
  const std::lock_guard lock(mutex);
  if (auto api = loaded.lock()) return api;
  std::shared_ptr<LibvirtApi> api(new LibvirtApi);
  TRY(api->load());
  TRY(api->start_events());
  loaded = api;
  return api;
}

/// The libraries stay loaded: libvirt has threads and exit handlers of its own.
Result<void> LibvirtApi::load() {
  void* const library = TRY(load_library(kLibrary));
  void* const qemu_library = TRY(load_library(kQemuLibrary));
#define RINGSIDE_FIND(name) TRY(find_function(library, #name, name));
  RINGSIDE_LIBVIRT_FUNCTIONS(RINGSIDE_FIND)
#undef RINGSIDE_FIND
#define RINGSIDE_FIND(name) TRY(find_function(qemu_library, #name, name));
  RINGSIDE_LIBVIRT_QEMU_FUNCTIONS(RINGSIDE_FIND)
#undef RINGSIDE_FIND
  return {};
}

Result<void> LibvirtApi::start_events() {
  // Errors are told where they are handled, not on stderr.
  virSetErrorFunc(nullptr, [](void*, virErrorPtr) {});
  // The loop is libvirt's for good, also when we come back to it.
  static const bool initialised = virInitialize() == 0 && virEventRegisterDefaultImpl() == 0;
  if (!initialised) return fail(ErrorCode::Io, "libvirt does not start: " + last_error());
  const AllSignalsBlocked blocked;
  events_ = std::thread([this] {
    const int timer = virEventAddTimeout(
        kStopPoll, [](int, void*) {}, nullptr, nullptr);
    while (!stop_.load() && virEventRunDefaultImpl() == 0) {
    }
    if (timer >= 0) virEventRemoveTimeout(timer);
  });
  return {};
}

LibvirtApi::~LibvirtApi() {
  stop_.store(true);
  if (events_.joinable()) events_.join();
}

std::string LibvirtApi::last_error() const {
  const char* const message = virGetLastErrorMessage();
  return printable(std::string_view(message != nullptr ? message : "").substr(0, kLongestError));
}

}  // namespace ringside::vmm
