// In this file, top to bottom: the kernel's banner, finding it, the vCPU that arrives, its taking.
#include "vmm/linux/discovery/kernel_boot_watch.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "vmm/arch/arch.h"
#include "vmm/linux/constants.h"
#include "vmm/linux/text/relocations.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kKernelMap = arch::kKernelImage.raw();
constexpr std::uint64_t kFarthest = arch::kKernelImageSize;
constexpr std::uint64_t kStep = 2ULL << 20;  // least CONFIG_PHYSICAL_ALIGN
constexpr std::size_t kLongestBanner = 1024;
constexpr std::size_t kTextCompared = 4096;

struct Piece {
  std::uint64_t address = 0;
  std::span<const std::byte> bytes;
};

/// linux_banner: "Linux version 6.1.0-..." to its line's end (init/version.c). It names the build.
std::optional<Piece> find_banner(const vmm::ElfFile& image) {
  for (const vmm::ElfFile::Segment& segment : image.segments()) {
    // SAFETY: char may alias any bytes; the span lies inside the file.
    const std::string_view text(reinterpret_cast<const char*>(segment.bytes.data()),
                                segment.bytes.size());
    for (auto at = text.find(kBannerStart); at != std::string_view::npos;
         at = text.find(kBannerStart, at + 1)) {
      const std::string_view line = text.substr(at, kLongestBanner);
      const auto size = line.find('\n');
      const char digit = line.size() > kBannerStart.size() ? line[kBannerStart.size()] : ' ';
      if (size == std::string_view::npos || digit < '0' || digit > '9') continue;
      return Piece{segment.address + at, segment.bytes.subspan(at, size)};
    }
  }
  return std::nullopt;
}

std::optional<Piece> first_text(const vmm::ElfFile& image) {
  for (const vmm::ElfFile::Segment& segment : image.segments()) {
    if (!segment.executable || segment.address < kKernelMap) continue;
    const std::size_t size = std::min(segment.bytes.size(), kTextCompared);
    return Piece{segment.address, segment.bytes.first(size)};
  }
  return std::nullopt;
}

bool stands_at(const GuestReader& live, const Piece& piece, std::uint64_t slide) {
  std::vector<std::byte> found(piece.bytes.size());
  return live.read(GuestVirt(piece.address).wrapping_add(slide), found) &&
         std::equal(found.begin(), found.end(), piece.bytes.begin());
}

}  // namespace

std::optional<KaslrOffset> find_kaslr_offset(std::span<const std::byte> payload,
                                             const vmm::GuestMemory& memory,
                                             const vmm::PageTable& table) {
  const auto image = vmm::ElfFile::parse(payload);
  if (!image) return std::nullopt;
  const auto banner = find_banner(*image);
  const auto text = first_text(*image);
  if (!banner || !text) return std::nullopt;
  const Relocations relocations = Relocations::parse(payload, *image);
  const vmm::PageTableReader live(memory, table);
  for (std::uint64_t slide = 0; slide < kFarthest; slide += kStep) {
    if (!stands_at(live, *banner, slide)) continue;
    std::vector<std::byte> moved(text->bytes.begin(), text->bytes.end());
    relocations.apply(*image, text->address, moved, static_cast<std::int64_t>(slide));
    if (!stands_at(live, {text->address, moved}, slide)) continue;
    const auto physical =
        vmm::translate(memory, table, GuestVirt(banner->address).wrapping_add(slide));
    const auto linked = image->physical(banner->address);
    if (!physical || !linked) return std::nullopt;
    return KaslrOffset{static_cast<std::int64_t>(slide),
                       static_cast<std::int64_t>(physical->address.raw() - *linked)};
  }
  return std::nullopt;
}

Result<std::unique_ptr<KernelBootWatch>> KernelBootWatch::watch(vmm::Machine& machine) {
  UniqueFd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) {
    return fail(ErrorCode::Io, fmt::format("cannot make an event: {}", std::strerror(errno)));
  }
  std::unique_ptr<KernelBootWatch> arrival(new KernelBootWatch(machine, std::move(event)));
  TRY(arrival->listen());
  return arrival;
}

Result<void> KernelBootWatch::listen() {
  vmm::PausedMachine paused = TRY(vmm::PausedMachine::pause(machine_));
  vmm::VcpuExits::Wanted wanted;
  wanted.kinds[static_cast<std::size_t>(vmm::VcpuEvent::Kind::MsrWrite)] = true;
  TRY(machine_.exits()->want(paused, wanted));
  listening_ = true;
  machine_.exits()->set_sink(paused, this);
  return {};
}

KernelBootWatch::~KernelBootWatch() {
  let_go();
  // Threads of a machine that has ended may still tell us of it.
  if (listening_ && !stop_listening()) machine_.shut_down();
}

/// Keeps the vCPU out of the guest, as if paused, until the machine is paused.
void KernelBootWatch::on_event(vmm::StoppedVcpu& vcpu, const vmm::VcpuEvent& event) {
  if (event.kind != vmm::VcpuEvent::Kind::MsrWrite) return;
  const Registers& registers = vcpu.registers();
  if (registers.*arch::kProgramCounter < kKernelMap) return;
  std::unique_lock lock(mutex_);
  if (over_ || table_) return;
  table_ = arch::page_table_of(registers);
  eventfd_write(event_.get(), 1);
  changed_.wait(lock, [this] { return over_; });
}

void KernelBootWatch::let_go() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
}

Result<vmm::PausedMachine> KernelBootWatch::stop_listening() {
  vmm::PausedMachine paused = TRY(vmm::PausedMachine::pause(machine_));
  let_go();
  machine_.exits()->set_sink(paused, nullptr);
  listening_ = false;
  TRY(machine_.exits()->want(paused, {}));
  return paused;
}

Result<KernelBootWatch::BootedKernel> KernelBootWatch::take(const vmm::KernelFile& file) {
  vmm::PausedMachine paused = TRY(stop_listening());
  const auto payload = TRY(file.elf());
  const auto move = table_ ? find_kaslr_offset(payload, machine_.memory(), *table_) : std::nullopt;
  if (move) return BootedKernel{*move, std::move(paused)};
  return fail(ErrorCode::NotFound,
              fmt::format("cannot tell where the kernel of {} has moved itself; give it "
                          "-x bootargs=nokaslr, or trace it once it has booted, with --after-boot",
                          file.name()));
}

}  // namespace ringside::guest_linux
