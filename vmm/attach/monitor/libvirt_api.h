// libvirt's own client libraries, loaded when a domain is first named. So a run without a domain
// needs no libvirt on the host. Also has the thread that runs libvirt's events, one for the
// process. Used by LibvirtMonitor only. Reference: libvirt's API documentation, libvirt-domain and
// libvirt-qemu; versions 8.2 (descriptors with monitor commands) and later.
// Threads: open() any; what is loaded is thread-safe by itself.
#pragma once

#include <libvirt/libvirt-qemu.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "vmm/base/result.h"

namespace ringside::vmm {

/// The functions that we call, by libvirt's names and with its types.
#define RINGSIDE_LIBVIRT_FUNCTIONS(X)  \
  X(virInitialize)                     \
  X(virSetErrorFunc)                   \
  X(virGetLastErrorMessage)            \
  X(virEventRegisterDefaultImpl)       \
  X(virEventRunDefaultImpl)            \
  X(virEventAddTimeout)                \
  X(virEventRemoveTimeout)             \
  X(virConnectOpenAuth)                \
  X(virConnectClose)                   \
  X(virConnectIsAlive)                 \
  X(virConnectRegisterCloseCallback)   \
  X(virConnectUnregisterCloseCallback) \
  X(virConnectGetType)                 \
  X(virConnectGetURI)                  \
  X(virConnectListAllDomains)          \
  X(virDomainLookupByName)             \
  X(virDomainLookupByUUIDString)       \
  X(virDomainGetName)                  \
  X(virDomainGetUUIDString)            \
  X(virDomainGetState)                 \
  X(virDomainFree)
#define RINGSIDE_LIBVIRT_QEMU_FUNCTIONS(X)    \
  X(virDomainQemuMonitorCommandWithFiles)     \
  X(virConnectDomainQemuMonitorEventRegister) \
  X(virConnectDomainQemuMonitorEventDeregister)

class LibvirtApi {
 public:
  /// Unsupported, with the package's name, where there is no libvirt or one that is too old.
  static Result<std::shared_ptr<LibvirtApi>> open();
  ~LibvirtApi();
  LibvirtApi(const LibvirtApi&) = delete;
  LibvirtApi& operator=(const LibvirtApi&) = delete;

  /// libvirt's words on this thread's last error, printable and in one line.
  std::string last_error() const;

#define RINGSIDE_MEMBER(name) decltype(&::name) name = nullptr;
  RINGSIDE_LIBVIRT_FUNCTIONS(RINGSIDE_MEMBER)
  RINGSIDE_LIBVIRT_QEMU_FUNCTIONS(RINGSIDE_MEMBER)
#undef RINGSIDE_MEMBER

 private:
  LibvirtApi() = default;
  Result<void> load();
  Result<void> start_events();

  std::atomic<bool> stop_{false};
  std::thread events_;
};

}  // namespace ringside::vmm
