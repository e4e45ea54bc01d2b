// In this file: formats and records (pure), the host's tracepoints, one vCPU's events, time.
#include "vmm/kvm/host/host_tracepoints.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "vmm/arch/arch.h"
#include "vmm/base/bytes.h"
#include "vmm/base/numbers.h"

namespace ringside::vmm::kvm {

namespace {

using Kind = VcpuEvent::Kind;

using arch::kPageSize;                        // the host's: KVM runs guests of its own architecture
constexpr std::size_t kRing = 8 * kPageSize;  // some 300 records; each is read at once

// KVM_ISA_VMX and KVM_ISA_SVM (arch/x86/kvm/trace.h); EXIT_REASON_HLT and SVM_EXIT_HLT
// (arch/x86/include/uapi/asm/{vmx,svm}.h).
constexpr const char* kIsHalt =
    "(isa == 1 && exit_reason == 12) || (isa == 2 && exit_reason == 120)";

Result<std::string> read_format(const char* tracepoint) {
  const std::string events = std::string(HostTracepoints::kTracefs) + "/events";
  const std::string path = fmt::format("{}/kvm/{}/format", events, tracepoint);
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd) {
    std::string text(16 << 10, '\0');
    const ssize_t size = read(fd.get(), text.data(), text.size());
    if (size >= 0) {
      text.resize(static_cast<std::size_t>(size));
      return text;
    }
  }
  const int error = errno;
  if (error == EACCES || error == EPERM) {
    return fail(ErrorCode::Unsupported,
                fmt::format("needs the host's tracepoint kvm:{}, whose format {} only root may "
                            "read here",
                            tracepoint, path));
  }
  if (access(events.c_str(), F_OK) != 0) {
    return fail(ErrorCode::Unsupported,
                fmt::format("needs the host's tracepoint kvm:{}, and there is no tracefs: mount -t "
                            "tracefs nodev {}",
                            tracepoint, HostTracepoints::kTracefs));
  }
  return fail(ErrorCode::Unsupported,
              fmt::format("this host's KVM has no tracepoint kvm:{} ({}: {})", tracepoint, path,
                          std::strerror(error)));
}

Result<UniqueFd> open_tracepoint(std::uint32_t id, int tid) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.config = id;
  attributes.sample_period = 1;
  attributes.sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_RAW;
  attributes.wakeup_events = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC_RAW;
  UniqueFd fd(static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  if (fd) return fd;
  const bool denied = errno == EACCES || errno == EPERM;
  return fail(
      ErrorCode::Unsupported,
      fmt::format("cannot open KVM's tracepoints with perf_event_open: {}{}", std::strerror(errno),
                  denied ? "; run as root, or with CAP_PERFMON" : ""));
}

}  // namespace

Result<HostFormats::Cpuid> parse_cpuid_format(std::string_view format) {
  HostFormats::Cpuid cpuid;
  cpuid.id = TRY(trace_id(format));
  constexpr std::array<std::string_view, 6> kNames{"function", "index", "rax", "rbx", "rcx", "rdx"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    cpuid.fields[i] = TRY(trace_field(format, kNames[i]));
  }
  return cpuid;
}

Result<HostFormats::Wakeup> parse_wakeup_format(std::string_view format) {
  HostFormats::Wakeup wakeup;
  wakeup.id = TRY(trace_id(format));
  wakeup.ns = TRY(trace_field(format, "ns"));
  return wakeup;
}

void HostEventDecoder::take(std::uint64_t time, std::span<const std::byte> raw, const Tell& tell) {
  constexpr TraceField kCommonType{0, 2};  // of every record: the tracepoint's id
  const auto type = kCommonType.read(raw);
  if (!type) return;
  if (*type == formats_.cpuid.id) {
    HostEvent event{time, {Kind::Cpuid, 0, {}}};
    for (std::size_t i = 0; i < formats_.cpuid.fields.size(); ++i) {
      // Registers of 64 bits in the record, of which cpuid defines 32.
      event.event.values[i] =
          static_cast<std::uint32_t>(formats_.cpuid.fields[i].read(raw).value_or(0));
    }
    tell(event);
  } else if (*type == formats_.exit_id) {
    finish(tell);
    halt_ = Halt{time, 0};
  } else if (*type == formats_.wakeup.id && halt_) {
    halt_->ns += formats_.wakeup.ns.read(raw).value_or(0);
    halt_->time = time;
    woken_ = true;
  }
}

void HostEventDecoder::finish(const Tell& tell) {
  if (!halt_) return;
  const Halt halt = *std::exchange(halt_, std::nullopt);
  tell({halt.time, {Kind::Hlt, 0, {halt.ns}}});
}

std::optional<std::string> HostTracepoints::cannot(Kind kind) {
  if (!std::exchange(looked_, true)) {
    if (const auto cpuid = look_for_cpuid(); !cpuid) no_cpuid_ = cpuid.error().message;
    if (const auto halts = look_for_halts(); !halts) no_halts_ = halts.error().message;
  }
  return kind == Kind::Cpuid ? no_cpuid_ : no_halts_;
}

Result<void> HostTracepoints::look_for_cpuid() {
  const std::string format = TRY(read_format("kvm_cpuid"));
  formats_.cpuid = TRY(parse_cpuid_format(format));
  TRY(open_tracepoint(formats_.cpuid.id, 0));  // may we?
  return {};
}

Result<void> HostTracepoints::look_for_halts() {
  // A KVM without the processor's help may emulate hlt where no exit is told.
  if (access("/sys/module/kvm_intel", F_OK) != 0 && access("/sys/module/kvm_amd", F_OK) != 0) {
    return fail(
        ErrorCode::Unsupported,
        "this host's KVM is neither kvm_intel nor kvm_amd, and may halt a guest untold; use "
        "vm:::exit and profile-N");
  }
  const std::string exit = TRY(read_format("kvm_exit"));
  formats_.exit_id = TRY(trace_id(exit));
  TRY(trace_field(exit, "isa"));
  TRY(trace_field(exit, "exit_reason"));
  const std::string wakeup = TRY(read_format("kvm_vcpu_wakeup"));
  formats_.wakeup = TRY(parse_wakeup_format(wakeup));
  TRY(open_tracepoint(formats_.exit_id, 0));
  return {};
}

Result<std::unique_ptr<VcpuTracepoints>> VcpuTracepoints::open(const HostFormats& formats,
                                                               Wanted wanted, int tid, int signal) {
  std::unique_ptr<VcpuTracepoints> points(new VcpuTracepoints(formats));
  if (wanted.cpuid) TRY(points->add(formats.cpuid.id, nullptr, tid, signal));
  if (wanted.halts) {
    TRY(points->add(formats.wakeup.id, nullptr, tid, signal));
    TRY(points->add(formats.exit_id, kIsHalt, tid, 0));
  }
  return points;
}

VcpuTracepoints::~VcpuTracepoints() {
  if (!mapping_.empty()) munmap(mapping_.data(), mapping_.size());
}

Result<void> VcpuTracepoints::add(std::uint32_t id, const char* filter, int tid, int signal) {
  UniqueFd fd = TRY(open_tracepoint(id, tid));
  const auto refuse = [](const char* what) {
    return fail(ErrorCode::Io, fmt::format("cannot listen to KVM's tracepoints: {}: {}", what,
                                           std::strerror(errno)));
  };
  if (fds_.empty()) {
    TRY(map(fd.get()));
  } else if (ioctl(fd.get(), PERF_EVENT_IOC_SET_OUTPUT, fds_[0].get()) != 0) {
    return refuse("one ring for all");
  }
  if (filter != nullptr && ioctl(fd.get(), PERF_EVENT_IOC_SET_FILTER, filter) != 0) {
    return refuse("the filter of kvm:kvm_exit");
  }
  if (signal != 0) {
    f_owner_ex owner{F_OWNER_TID, tid};
    if (fcntl(fd.get(), F_SETSIG, signal) != 0 || fcntl(fd.get(), F_SETOWN_EX, &owner) != 0 ||
        fcntl(fd.get(), F_SETFL, O_ASYNC) != 0) {
      return refuse("the signal to the vCPU's thread");
    }
  }
  fds_.push_back(std::move(fd));
  return {};
}

Result<void> VcpuTracepoints::map(int fd) {
  void* at = mmap(nullptr, kPageSize + kRing, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) {
    return fail(ErrorCode::Io,
                fmt::format("cannot map the ring of KVM's tracepoints: {}", std::strerror(errno)));
  }
  mapping_ = {static_cast<std::byte*>(at), kPageSize + kRing};
  // SAFETY: man perf_event_open, "MMAP layout": the page of control data, then the ring.
  ring_.emplace(*static_cast<perf_event_mmap_page*>(at), mapping_.subspan(kPageSize));
  return {};
}

void VcpuTracepoints::drain(std::vector<HostEvent>& events, const Vcpu& vcpu) {
  const auto keep = [&events](const HostEvent& event) { events.push_back(event); };
  while (const auto sample = ring_->next()) decoder_.take(sample->time, sample->raw, keep);
  // A timer that has woken the vCPU leaves it "halted" until the next KVM_RUN injects the interrupt
  // (arch/x86/kvm/x86.c, vcpu_block).
  const bool woken = decoder_.take_wakeup() && !vcpu.kicked;
  if (decoder_.halting() && (woken || !vcpu.is_halted())) decoder_.finish(keep);
}

TscOfTime::Moment TscOfTime::now() {
  timespec time;
  const std::uint64_t before = __rdtsc();
  clock_gettime(CLOCK_MONOTONIC_RAW, &time);
  const std::uint64_t after = __rdtsc();
  return {before + (after - before) / 2, static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
                                             static_cast<std::uint64_t>(time.tv_nsec)};
}

std::uint64_t TscOfTime::at(std::uint64_t ns, const Moment& now) const {
  __extension__ using Wide = unsigned __int128;
  if (now.ns <= first_.ns || now.tsc <= first_.tsc || ns >= now.ns) return now.tsc;
  const std::uint64_t age = now.ns - std::max(ns, first_.ns);
  return now.tsc -
         static_cast<std::uint64_t>(Wide{age} * (now.tsc - first_.tsc) / (now.ns - first_.ns));
}

void PerfRing::copy(std::uint64_t at, std::span<std::byte> to) const {
  const std::size_t begin = at % data_.size();
  const std::size_t first = std::min(to.size(), data_.size() - begin);
  std::memcpy(to.data(), data_.data() + begin, first);
  std::memcpy(to.data() + first, data_.data(), to.size() - first);
}

std::optional<PerfRing::Sample> PerfRing::next() {
  constexpr std::size_t kHeader = sizeof(perf_event_header), kRaw = kHeader + 12;
  // SAFETY: the kernel writes data_head after the records before it, and reads data_tail before it
  // writes over them (man perf_event_open): an acquire and a release.
  const std::uint64_t head = __atomic_load_n(&page_->data_head, __ATOMIC_ACQUIRE);
  std::uint64_t tail = page_->data_tail;
  while (head - tail >= kHeader) {
    perf_event_header header;
    copy(tail, std::as_writable_bytes(std::span(&header, 1)));
    if (header.size < kHeader || header.size > head - tail) break;  // not as documented: give up
    const auto record =
        std::span(record_).first(std::min<std::size_t>(header.size, record_.size()));
    copy(tail, record);
    tail += header.size;
    __atomic_store_n(&page_->data_tail, tail, __ATOMIC_RELEASE);
    if (header.type == PERF_RECORD_LOST) {
      lost_ += load_within<std::uint64_t>(record, kHeader + 8).value_or(0);
    }
    if (header.type != PERF_RECORD_SAMPLE || record.size() < kRaw) continue;
    const std::size_t size = load_at<std::uint32_t>(record, kRaw - 4);
    return Sample{load_at<std::uint64_t>(record, kHeader),
                  record.subspan(kRaw, std::min(size, record.size() - kRaw))};
  }
  if (head != tail) __atomic_store_n(&page_->data_tail, head, __ATOMIC_RELEASE);
  return std::nullopt;
}

namespace {

/// The number after the first `key` of `text`.
std::optional<std::uint32_t> number_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return take_number<std::uint32_t>(text);
}

}  // namespace

std::optional<std::uint64_t> TraceField::read(std::span<const std::byte> record) const {
  if (offset > record.size() || size > record.size() - offset) return std::nullopt;
  std::uint64_t value = 0;
  std::memcpy(&value, record.data() + offset, size);
  return value;
}

Result<std::uint32_t> trace_id(std::string_view format) {
  const auto id = number_after(format, "ID:");
  if (!id) return fail(ErrorCode::Invalid, "the format of a tracepoint has no ID");
  return *id;
}

Result<TraceField> trace_field(std::string_view format, std::string_view name) {
  // "\tfield:unsigned long rax;\toffset:16;\tsize:8;\tsigned:0;"
  for (std::size_t at = 0; at < format.size();) {
    const std::string_view line = format.substr(at, format.find('\n', at) - at);
    at += line.size() + 1;
    const std::size_t begin = line.find("field:"), end = line.find(';');
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) continue;
    const std::string_view declared = line.substr(begin, end - begin);
    if (declared.substr(declared.find_last_of(" *:") + 1) != name) continue;
    const auto offset = number_after(line, "offset:"), size = number_after(line, "size:");
    const bool fits = size && (*size == 1 || *size == 2 || *size == 4 || *size == 8);
    if (offset && fits) return TraceField{*offset, *size};
    return fail(ErrorCode::Invalid, fmt::format("a tracepoint's field '{}' is no number", name));
  }
  return fail(ErrorCode::NotFound, fmt::format("a tracepoint has no field '{}'", name));
}

}  // namespace ringside::vmm::kvm
