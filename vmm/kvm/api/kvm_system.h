// /dev/kvm: opens it and asks what it can do. Each error is one line that says what to do.
// Used by kvm_machine, kvm_vm and the trap trial. Does not: judge whether kernel code runs at a
// useful speed (kvm_fitness does).
// KVM API: Linux Documentation/virt/kvm/api.rst, as everything in this folder.
#pragma once

#include <sys/ioctl.h>

#include <functional>
#include <memory>
#include <string>

#include "vmm/base/result.h"
#include "vmm/base/unique_fd.h"
#include "vmm/kvm/host/cpuid.h"

namespace ringside::vmm::kvm {

class KvmSystem {
 public:
  /// NotFound, Io (not permitted), or Unsupported (another API, a missing capability), with the way
  /// out.
  static Result<KvmSystem> open(const std::string& device);

  int fd() const { return fd_.get(); }
  /// KVM_CHECK_EXTENSION of a KVM_CAP_*: 0 when it is not there.
  int check(int capability) const;
  /// The size of a vCPU's shared area: struct kvm_run, port data, coalesced accesses.
  std::size_t run_size() const { return run_size_; }
  /// vCPUs that a VM may have.
  unsigned most_vcpus() const;
  Result<std::unique_ptr<CpuidTable>> supported_cpuid() const;

 private:
  KvmSystem(UniqueFd fd, std::size_t run_size) : fd_(std::move(fd)), run_size_(run_size) {}

  UniqueFd fd_;
  std::size_t run_size_;
};

/// Unsupported, naming the first capability that a machine needs and `check` (KVM_CHECK_EXTENSION)
/// does not have.
Result<void> check_capabilities(const std::function<int(int)>& check);

/// "KVM_CREATE_VM failed: No space left on device", from errno.
Error kvm_error(std::string_view call);

/// The answer of an ioctl, or an Io error that names it.
template <class T>
Result<int> kvm_call(int fd, unsigned long request, std::string_view name, T argument) {
  const int answer = ioctl(fd, request, argument);
  if (answer < 0) return Unexpected<Error>(kvm_error(name));
  return answer;
}

}  // namespace ringside::vmm::kvm
