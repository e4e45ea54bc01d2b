// Multiboot Specification 0.6.96: 3.1 (what the header asks for), 3.2 (the machine's state), 3.3
// (the information that the kernel gets).
#include "vmm/kvm/boot/multiboot.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "vmm/kvm/boot/boot_data.h"
#include "vmm/kvm/boot/boot_image.h"
#include "vmm/kvm/boot/layout.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint32_t kBootMagic = 0x2bad'b002;
constexpr std::uint32_t kMustKnow = 0xffff;  // of the header's flags: refuse what one does not know
constexpr std::uint32_t kPageAligned = 1 << 0, kWantsMemory = 1 << 1, kWantsVideo = 1 << 2;

constexpr std::uint32_t kHasMemory = 1 << 0, kHasCommandLine = 1 << 2, kHasModules = 1 << 3,
                        kHasMemoryMap = 1 << 6, kHasLoaderName = 1 << 9;

struct Info {
  std::uint32_t flags = kHasMemory | kHasCommandLine | kHasMemoryMap | kHasLoaderName;
  std::uint32_t memory_lower = 0, memory_upper = 0;  // KiB below 1 MiB and from there to a hole
  std::uint32_t boot_device = 0;
  std::uint32_t command_line = static_cast<std::uint32_t>(kCommandLine);
  std::uint32_t module_count = 0, modules = 0;
  std::array<std::uint32_t, 4> symbols{};
  std::uint32_t memory_map_size = 0, memory_map = 0;
  std::uint32_t drives_size = 0, drives = 0, config_table = 0;
  std::uint32_t loader_name = 0;
  std::array<std::uint32_t, 13> others{};  // APM, VBE, framebuffer: none
};
static_assert(offsetof(Info, memory_map_size) == 44 && offsetof(Info, loader_name) == 64);

struct Module {
  std::uint32_t start = 0, end = 0, text = 0, reserved = 0;
};

struct [[gnu::packed]] MemoryRange {
  std::uint32_t size = 20;  // of what follows
  std::uint64_t base = 0, length = 0;
  std::uint32_t type = 0;  // as in e820
};
static_assert(sizeof(MemoryRange) == 24);

constexpr std::uint64_t kModuleAt = kStartInfo + 0x80;
constexpr std::uint64_t kNameAt = kStartInfo + 0xc0;
constexpr std::array<char, 9> kLoaderName{"ringside"};
static_assert(kStartInfo + sizeof(Info) <= kModuleAt);

/// The flat file's one segment, checked against the file and itself.
Result<BootImage> flat_image(const KernelFile& kernel, const MultibootHeader& header) {
  const MultibootHeader::Addresses& addresses = *header.addresses;
  const std::span<const std::byte> file = kernel.bytes();
  const auto invalid = [&](std::string_view what) {
    return fail(ErrorCode::Invalid, fmt::format("{}: Multiboot header: {}", kernel.name(), what));
  };
  const std::uint64_t before = std::uint64_t{addresses.header} - addresses.load;
  if (addresses.header < addresses.load || before > header.at)
    return invalid("the load address lies before the file's start or after the header");
  const std::uint64_t first = header.at - before;
  std::uint64_t size = file.size() - first;
  if (addresses.load_end != 0) {
    if (addresses.load_end < addresses.load) return invalid("it ends before it starts");
    if (addresses.load_end - addresses.load > size) return invalid("the file is cut short");
    size = addresses.load_end - addresses.load;
  }
  std::uint64_t memory_size = size;
  if (addresses.bss_end != 0) {
    if (addresses.bss_end < addresses.load + size) return invalid("the bss ends before the data");
    memory_size = addresses.bss_end - addresses.load;
  }
  if (memory_size == 0) return invalid("nothing to load");
  BootImage image;
  image.entry = addresses.entry;
  image.segments = {{addresses.load, addresses.load, memory_size, file.subspan(first, size)}};
  return image;
}

Result<void> write_info(GuestMemory& memory, const BootRequest& request, GuestPhys initrd) {
  Info info;
  info.memory_lower = static_cast<std::uint32_t>(kLowRamEnd / 1024);
  std::uint64_t at = kMemoryMapAt;
  for (const E820Entry& entry : memory_map(request.ram_size)) {
    if (entry.base == kAcpiEnd) info.memory_upper = static_cast<std::uint32_t>(entry.size / 1024);
    const MemoryRange range{20, entry.base, entry.size, static_cast<std::uint32_t>(entry.type)};
    TRY(put(memory, at, bytes_of(range), "the Multiboot information"));
    at += sizeof range;
  }
  info.memory_map = static_cast<std::uint32_t>(kMemoryMapAt);
  info.memory_map_size = static_cast<std::uint32_t>(at - kMemoryMapAt);
  if (!request.initrd.empty()) {
    const auto start = static_cast<std::uint32_t>(initrd.raw());  // below 3 GiB, with its end
    const Module module{start, static_cast<std::uint32_t>(start + request.initrd.size()), 0, 0};
    TRY(put(memory, kModuleAt, bytes_of(module), "the Multiboot information"));
    info.flags |= kHasModules;
    info.module_count = 1;
    info.modules = static_cast<std::uint32_t>(kModuleAt);
  }
  TRY(put(memory, kNameAt, std::as_bytes(std::span(kLoaderName)), "the Multiboot information"));
  info.loader_name = static_cast<std::uint32_t>(kNameAt);
  return put(memory, kStartInfo, bytes_of(info), "the Multiboot information");
}

}  // namespace

Result<BootState> load_multiboot(const KernelFile& kernel, const MultibootHeader& header,
                                 const BootRequest& request, GuestMemory& memory) {
  if ((header.flags & kWantsVideo) != 0) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{}: its Multiboot header asks for a video mode, and the machine has "
                            "no screen: clear flag 2",
                            kernel.name()));
  }
  const std::uint32_t unknown = header.flags & kMustKnow & ~(kPageAligned | kWantsMemory);
  if (unknown != 0) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{}: its Multiboot header has flags that we do not know: {:#x}",
                            kernel.name(), unknown));
  }
  const BootImage image = header.addresses ? TRY(flat_image(kernel, header))
                                           : TRY(read_boot_image(kernel.bytes(), kernel.name()));
  TRY(check_entry(image, image.entry, kernel.name()));
  const Placement place =
      TRY(place_kernel(image.room(), request.initrd.size(), request.ram_size, kernel.name()));

  BootState state;
  state.protocol = BootProtocol::Multiboot;
  state.mode = BootState::Mode::Protected32;
  TRY(write_common(memory, request, place.initrd, std::numeric_limits<std::uint64_t>::max(),
                   state.mode));
  TRY(load_segments(image, memory));
  TRY(write_info(memory, request, place.initrd));
  state.entry = image.entry;
  state.rax = kBootMagic;
  state.rbx = kStartInfo;
  return state;
}

}  // namespace ringside::vmm::kvm
