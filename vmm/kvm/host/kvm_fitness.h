// Tells whether this host's KVM can run a stock kernel. Some nested hosts offer a /dev/kvm that
// emulates kernel mode, some thousand times too slowly and without popcnt or clac; Linux never
// boots there. The trial times a million kernel-mode instructions, those two among them. Used by
// start_qemu and kvm_machine. Does not: start QEMU or keep anything open.
#pragma once

#include <string>

namespace ringside::vmm {

struct KvmFitness {
  bool fit = false;
  std::string reason;  // why not, for the user; empty when fit
};

/// `device`: a path. Takes a few ms where KVM is fit (100 on an SVM that TCG translates, most of
/// them to make the VM), about 0.25 s where it is not. Never hangs: the trial runs in a process of
/// its own that is killed when its time is over.
KvmFitness check_kvm(const char* device = "/dev/kvm");

}  // namespace ringside::vmm
