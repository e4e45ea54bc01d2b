#include "vmm/saved/saved_machine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "vmm/arch/arch.h"
#include "vmm/base/align.h"
#include "vmm/file_memory.h"
#include "vmm/saved/elf_core.h"
#include "vmm/saved/migration_stream.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kFourGib = std::uint64_t{4} << 30;
/// Less than this no Linux runs in.
constexpr std::uint64_t kLeastRaw = 8 << 20;

/// The first bytes of files from other ways to save a guest, and what to do about each.
struct OtherForm {
  std::string_view magic, what;
};
// makedumpfile -E makes an ELF core of /proc/vmcore, but of neither of its own other two forms.
constexpr std::array<OtherForm, 4> kOtherForms{{
    {"KDUMP   ",
     "a compressed dump; dump the guest as an ELF core instead: dump-guest-memory or virsh dump "
     "--memory-only without a kdump format, in the guest makedumpfile -E /proc/vmcore"},
    {"DISKDUMP",
     "a compressed dump; dump the guest as an ELF core instead: makedumpfile -E /proc/vmcore"},
    {"makedumpfile",
     "a flattened dump; dump the guest as an ELF core instead: dump-guest-memory or virsh dump "
     "--memory-only without a kdump format, in the guest makedumpfile -E /proc/vmcore"},
    {"LibvirtQemudPart", "a libvirt save image that was never completed"},
}};

Result<void> check_form(const std::vector<std::byte>& start, const std::string& path) {
  for (const OtherForm& form : kOtherForms) {
    if (start.size() >= form.magic.size() &&
        std::memcmp(start.data(), form.magic.data(), form.magic.size()) == 0) {
      return fail(ErrorCode::Unsupported, fmt::format("{} is {}", path, form.what));
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<SavedMachine>> SavedMachine::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0) {
    return fail(ErrorCode::NotFound, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::Invalid, path + " is not a file");
  auto size = static_cast<std::uint64_t>(info.st_size);
  std::vector<std::byte> start(ElfCore::kMagicBytes);
  const ssize_t got = pread(fd.get(), start.data(), start.size(), 0);
  start.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  TRY(check_form(start, path));
  std::optional<ElfCore> core;
  if (is_migration_stream(start)) {
    auto ram = read_migration_stream(fd.get(), size);
    if (!ram) return fail(ram.error().code, fmt::format("{}: {}", path, ram.error().message));
    fd = std::move(ram->file);
    size = ram->size;
  } else if (ElfCore::is_elf(start)) {
    auto read = ElfCore::read(fd.get());
    if (!read) return fail(read.error().code, fmt::format("{}: {}", path, read.error().message));
    core = std::move(*read);
  } else if (size < kLeastRaw) {
    return fail(ErrorCode::Invalid,
                fmt::format("{} is neither an ELF core nor as large as a guest's RAM", path));
  }
  auto file = std::make_shared<FileMemory>(std::move(fd));
  std::unique_ptr<SavedMachine> machine(new SavedMachine(file, round_down(size, arch::kPageSize)));
  machine->raw_ = !core;
  if (!core) {
    machine->split_at(machine->size_);
    return machine;
  }
  std::vector<GuestMemory::CopiedRegion> regions;
  for (const ElfCore::Segment& segment : core->segments) {
    regions.push_back({segment.base, segment.size, file, segment.offset});
  }
  machine->memory_ = GuestMemory::by_copies(regions);
  machine->registers_ = std::move(core->vcpus);
  machine->has_control_registers_ = core->has_control_registers;
  machine->missing_ = core->missing;
  return machine;
}

std::vector<std::uint64_t> SavedMachine::possible_splits() const {
  if (!raw_) return {};
  std::vector<std::uint64_t> splits;
  // QEMU's pc, q35 and microvm; Firecracker and crosvm; our own and others' 2 GiB.
  constexpr std::array<std::uint64_t, 6> kLowEnds{0xc000'0000, 0x8000'0000, 0xb000'0000,
                                                  0xe000'0000, 0xd000'0000, 0x7000'0000};
  for (const std::uint64_t low : kLowEnds) {
    if (low < size_) splits.push_back(low);
  }
  return splits;
}

std::optional<std::uint64_t> SavedMachine::split_for(std::uint64_t end) const {
  const std::uint64_t high = end - std::min(end, kFourGib);
  if (!raw_ || high == 0 || high >= size_ || size_ - high > kFourGib) return std::nullopt;
  return size_ - high;
}

void SavedMachine::split_at(std::uint64_t low) {
  std::vector<GuestMemory::CopiedRegion> regions{{GuestPhys(0), std::min(low, size_), file_, 0}};
  if (low < size_) regions.push_back({GuestPhys(kFourGib), size_ - low, file_, low});
  memory_ = GuestMemory::by_copies(regions);
}

Result<Registers> SavedMachine::registers(unsigned vcpu) {
  if (vcpu >= registers_.size()) {
    return fail(ErrorCode::NotFound, fmt::format("nothing is known of vCPU {}", vcpu));
  }
  return registers_[vcpu];
}

Result<void> SavedMachine::write(std::span<const CodeWrite>) {
  return fail(ErrorCode::Unsupported, "a saved guest's code is not changed");
}

}  // namespace ringside::vmm
