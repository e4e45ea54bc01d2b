// In this file, top to bottom: opening, stopping, registers, code.
#include "vmm/attach/process/process_vcpus.h"

#include <fmt/format.h>
#include <linux/kvm.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <thread>

#include "vmm/kvm/host/kvm_registers.h"

namespace ringside::vmm {

namespace {

constexpr std::uint64_t kWanted = KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS;
// In struct kvm_run.
constexpr std::uint64_t kValidAt = offsetof(kvm_run, kvm_valid_regs);
constexpr std::uint64_t kStoredAt = offsetof(kvm_run, s);
constexpr std::uint64_t kFlagsAt = kStoredAt + offsetof(kvm_sync_regs, regs.rflags);
constexpr std::uint64_t kCr0At = kStoredAt + offsetof(kvm_sync_regs, sregs.cr0);
// No vCPU has these: bit 1 of the flags is set, the upper half of CR0 clear.
constexpr std::uint64_t kNoFlags = 0, kNoCr0 = UINT64_MAX;

// A vCPU's thread that works on an exit just then is soon back in KVM, where it has registers.
constexpr int kStopTries = 4;
constexpr std::chrono::milliseconds kNapBetweenStops{1};
// A thread is there before it is a vCPU's.
constexpr unsigned kLooksAfterAChange = 20;
constexpr std::chrono::milliseconds kBetweenLooks{500};

template <class T>
bool read_value(const CopiedBytes& memory, std::uint64_t at, T& value) {
  const CopyPart part{at, std::as_writable_bytes(std::span(&value, 1))};
  return memory.read(std::span(&part, 1));
}

bool write_value(CopiedBytes& memory, std::uint64_t at, std::uint64_t value) {
  return memory.write(at, std::as_bytes(std::span(&value, 1)));
}

}  // namespace

Result<std::unique_ptr<ProcessVcpus>> ProcessVcpus::open(const HostProcess& process,
                                                         std::shared_ptr<CopiedBytes> memory,
                                                         GuestMemory& guest) {
  std::unique_ptr<ProcessVcpus> vcpus(new ProcessVcpus(process, std::move(memory), guest));
  vcpus->tasks_ = process.all_threads();
  vcpus->threads_ = TRY(find_vcpu_threads(process, vcpus->stopper_));
  vcpus->count_ = static_cast<unsigned>(vcpus->threads_.size());
  return vcpus;
}

Result<void> ProcessVcpus::find_plugged() {
  std::vector<pid_t> tasks = process_.all_threads();
  if (tasks.empty()) return {};  // whose process is gone is told by the pause
  const auto now = std::chrono::steady_clock::now();
  if (tasks != tasks_) {
    looks_left_ = kLooksAfterAChange;
  } else if (looks_left_ == 0 || now < next_look_) {
    return {};
  }
  const auto updated = update_vcpu_threads(process_, stopper_, threads_);
  count_ = static_cast<unsigned>(threads_.size());
  TRY(updated);
  tasks_ = std::move(tasks);
  --looks_left_;
  next_look_ = now + kBetweenLooks;
  return {};
}

ProcessVcpus::~ProcessVcpus() {
  const std::lock_guard lock(mutex_);
  if (pauses_ > 0) cancel_stop_requests();
  stopper_.let_go();
}

/// Asks for the registers that KVM_RUN's next return stores. A process may ask for registers
/// itself, so bits are only added; it does not read what it does not ask for, so a mark stands
/// there until KVM has stored something: a thread that is stopped twice in a row has not been in
/// KVM_RUN in between.
void ProcessVcpus::ask_for_registers() {
  asked_.assign(threads_.size(), 0);
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const std::uint64_t page = threads_[i].run_page;
    std::uint64_t valid = 0;
    if (page == 0 || !read_value(*memory_, page + kValidAt, valid)) continue;
    const std::uint64_t more = kWanted & ~valid;
    if ((more & KVM_SYNC_X86_REGS) != 0 && !write_value(*memory_, page + kFlagsAt, kNoFlags)) {
      continue;
    }
    if ((more & KVM_SYNC_X86_SREGS) != 0 && !write_value(*memory_, page + kCr0At, kNoCr0)) {
      continue;
    }
    if (more != 0 && write_value(*memory_, page + kValidAt, valid | more)) asked_[i] = more;
  }
}

void ProcessVcpus::cancel_stop_requests() {
  for (std::size_t i = 0; i < asked_.size(); ++i) {
    if (asked_[i] == 0) continue;
    const std::uint64_t at = threads_[i].run_page + kValidAt;
    std::uint64_t valid = 0;
    if (!read_value(*memory_, at, valid)) continue;  // it has ended
    (void)write_value(*memory_, at, valid & ~asked_[i]);
  }
  asked_.clear();
}

/// A vCPU may be unplugged just now.
Result<void> ProcessVcpus::stop_all() {
  Result<void> stopped;
  for (int i = 0; i < kStopTries; ++i) {
    TRY(find_plugged());
    stopped = stop_threads();
    if (stopped || stopped.error().code != ErrorCode::MachineGone || !process_.exists()) {
      return stopped;
    }
  }
  // Its machine lives.
  return fail(ErrorCode::Io, stopped.error().message + ", and its process has not: try again");
}

Result<void> ProcessVcpus::stop_threads() {
  std::vector<pid_t> threads;
  for (const VcpuThread& each : threads_) threads.push_back(each.thread);
  ask_for_registers();
  Result<void> stopped;
  for (int i = 1; (stopped = stopper_.stop(threads)) && i < kStopTries && !all_show_registers();
       ++i) {
    stopper_.let_go();
    std::this_thread::sleep_for(kNapBetweenStops);
  }
  if (!stopped) cancel_stop_requests();
  return stopped;
}

Result<void> ProcessVcpus::pause() {
  const std::lock_guard lock(mutex_);
  if (pauses_ == 0) TRY(stop_all());
  ++pauses_;
  return {};
}

Result<void> ProcessVcpus::resume() {
  const std::lock_guard lock(mutex_);
  if (--pauses_ > 0) return {};
  cancel_stop_requests();
  stopper_.let_go();
  return {};
}

std::optional<Registers> ProcessVcpus::stored_registers(std::size_t vcpu) {
  const auto thread = stopper_.registers(vcpu);
  const bool interrupted = thread &&
                           is_kvm_run(static_cast<std::int64_t>(thread->orig_rax), thread->rsi) &&
                           static_cast<std::int64_t>(thread->rax) == -EINTR;
  const std::uint64_t page = threads_[vcpu].run_page;
  kvm_sync_regs stored{};
  if (!interrupted || page == 0 || !read_value(*memory_, page + kStoredAt, stored) ||
      stored.regs.rflags == kNoFlags || stored.sregs.cr0 == kNoCr0) {
    return std::nullopt;
  }
  Registers registers = kvm::to_registers(stored.regs, stored.sregs, 0);
  kernel_gs_.complete(threads_[vcpu].number, registers);
  return registers;
}

/// Those that there were from the start: a new one has none before its guest starts it.
bool ProcessVcpus::all_show_registers() {
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    if (!threads_[i].is_plugged_in && !stored_registers(i)) return false;
  }
  return true;
}

Result<Registers> ProcessVcpus::registers(unsigned vcpu) {
  const std::lock_guard lock(mutex_);
  if (vcpu >= threads_.size()) {
    return fail(ErrorCode::NotFound, fmt::format("there is no vCPU {}", vcpu));
  }
  if (const auto found = stored_registers(vcpu)) return *found;
  return fail(ErrorCode::NotFound,
              fmt::format("vCPU {} is outside the guest just now and shows no registers", vcpu));
}

Result<void> ProcessVcpus::write(std::span<const CodeWrite> writes) {
  auto refused = write_through(*guest_, writes);
  for (const CodeWrite& write : writes) {
    // Read back: a page that is not what we think it is must not pass for armed.
    std::uint8_t now = 0;
    const bool done =
        guest_->read(write.at, std::as_writable_bytes(std::span(&now, 1))) && now == write.byte;
    if (!done && !refused) refused = write.at;
  }
  if (!refused) return {};
  return fail(ErrorCode::Io, fmt::format("the process's memory does not take a byte of code at "
                                         "guest-physical {:#x}",
                                         refused->raw()));
}

}  // namespace ringside::vmm
