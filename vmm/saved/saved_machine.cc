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
#include "vmm/base/bytes.h"
#include "vmm/base/numbers.h"
#include "vmm/copied_bytes.h"
#include "vmm/saved/compressed_dump.h"
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
constexpr std::array<OtherForm, 2> kOtherForms{{
    {"DISKDUMP", "a dump in diskdump's old form; dump the guest as an ELF core instead"},
    {"LibvirtQemudPart", "a libvirt save image that was never completed"},
}};

Result<void> check_form(const std::vector<std::byte>& start) {
  for (const OtherForm& form : kOtherForms) {
    if (begins_with(start, form.magic)) {
      return fail(ErrorCode::Unsupported, fmt::format("it is {}", form.what));
    }
  }
  return {};
}

std::vector<std::byte> start_of(const UniqueFd& fd) {
  std::vector<std::byte> start(ElfCore::kMagicBytes);
  const ssize_t got = pread(fd.get(), start.data(), start.size(), 0);
  start.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return start;
}

}  // namespace

Result<std::unique_ptr<SavedMachine>> SavedMachine::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0) {
    return fail(ErrorCode::NotFound, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::Invalid, path + " is not a file");
  auto machine = of_file(std::move(fd), static_cast<std::uint64_t>(info.st_size));
  if (!machine)
    return fail(machine.error().code, fmt::format("{}: {}", path, machine.error().message));
  return machine;
}

Result<std::unique_ptr<SavedMachine>> SavedMachine::of_file(UniqueFd fd, std::uint64_t size) {
  std::vector<std::byte> start = start_of(fd);
  if (is_flattened_dump(start)) {
    auto dump = TRY(unflatten(fd.get(), size));
    fd = std::move(dump.file);
    size = dump.size;
    start = start_of(fd);
  }
  TRY(check_form(start));
  if (ElfCore::is_elf(start)) return of_core(std::move(fd));
  if (is_compressed_dump(start)) return of_dump(std::move(fd), size);
  if (is_migration_stream(start)) {
    auto ram = TRY(read_migration_stream(fd.get(), size));
    fd = std::move(ram.file);
    size = ram.size;
  } else if (size < kLeastRaw) {
    return fail(ErrorCode::Invalid, "it is neither a core nor as large as a guest's RAM");
  }
  std::unique_ptr<SavedMachine> machine(new SavedMachine);
  machine->file_ = std::make_shared<FileMemory>(std::move(fd));
  machine->size_ = round_down(size, arch::kPageSize);
  machine->split_at(machine->size_);
  return machine;
}

Result<std::unique_ptr<SavedMachine>> SavedMachine::of_core(UniqueFd fd) {
  ElfCore core = TRY(ElfCore::read(fd.get()));
  const auto file = std::make_shared<FileMemory>(std::move(fd));
  std::vector<GuestMemory::CopiedRegion> regions;
  for (const ElfCore::Segment& segment : core.segments) {
    regions.push_back({segment.base, segment.size, file, segment.offset});
  }
  std::unique_ptr<SavedMachine> machine(new SavedMachine);
  machine->memory_ = GuestMemory::by_copies(regions);
  machine->vcpus_ = std::move(core.vcpus);
  machine->missing_ = core.missing;
  return machine;
}

Result<std::unique_ptr<SavedMachine>> SavedMachine::of_dump(UniqueFd fd, std::uint64_t size) {
  CompressedDump dump = TRY(read_compressed_dump(std::move(fd), size));
  std::vector<GuestMemory::CopiedRegion> regions;
  for (const ByteExtent& extent : dump.ram) {
    regions.push_back({GuestPhys(extent.offset), extent.size, dump.memory, extent.offset});
  }
  std::unique_ptr<SavedMachine> machine(new SavedMachine);
  machine->memory_ = GuestMemory::by_copies(regions);
  machine->vcpus_ = std::move(dump.vcpus);
  machine->missing_ = dump.missing;
  machine->left_out_ = dump.left_out;
  return machine;
}

std::vector<std::uint64_t> SavedMachine::possible_splits() const {
  if (!is_raw()) return {};
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
  if (!is_raw() || high == 0 || high >= size_ || size_ - high > kFourGib) return std::nullopt;
  return size_ - high;
}

void SavedMachine::split_at(std::uint64_t low) {
  std::vector<GuestMemory::CopiedRegion> regions{{GuestPhys(0), std::min(low, size_), file_, 0}};
  if (low < size_) regions.push_back({GuestPhys(kFourGib), size_ - low, file_, low});
  memory_ = GuestMemory::by_copies(regions);
}

Result<Registers> SavedMachine::registers(unsigned vcpu) {
  if (vcpu >= vcpus_.registers.size()) {
    return fail(ErrorCode::NotFound, fmt::format("nothing is known of vCPU {}", vcpu));
  }
  return vcpus_.registers[vcpu];
}

Result<void> SavedMachine::write(std::span<const CodeWrite>) {
  return fail(ErrorCode::Unsupported, "a saved guest's code is not changed");
}

}  // namespace ringside::vmm
