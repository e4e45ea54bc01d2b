// load_kernel: which protocol a kernel file asks for, then each of them; last Multiboot, whose
// specification (0.6.96) says in 3.1 what the header asks for, in 3.2 the state of the machine, in
// 3.3 the information that the kernel gets.
#include "vmm/kvm/boot/boot.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "vmm/kernel_file/boot_headers.h"
#include "vmm/kernel_file/kernel_file.h"
#include "vmm/kvm/boot/boot_data.h"
#include "vmm/kvm/boot/boot_image.h"
#include "vmm/kvm/boot/layout.h"
#include "vmm/kvm/boot/placement.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::uint64_t kEntry64 = 0x200;  // of the 64-bit protocol, from the load address on
constexpr std::uint64_t kMostAlignment = 1 << 30;

Result<BootState> load_bz_image(const KernelFile& kernel, const BootRequest& request,
                                GuestMemory& memory) {
  const BzImage image = TRY(read_bz_image(kernel.bytes(), kernel.name()));
  const auto refuse = [&](ErrorCode code, std::string_view why) {
    return fail(code, fmt::format("{}: {}", kernel.name(), why));
  };
  if (!image.kernel_64)
    return refuse(ErrorCode::Unsupported, "a 32-bit kernel: give one for x86-64");
  if (image.protected_mode.size() <= kEntry64)
    return refuse(ErrorCode::Invalid, "the bzImage ends before its entry point: copy it again");
  const std::uint64_t room_size =
      std::max<std::uint64_t>(image.init_size, image.protected_mode.size());
  if (image.relocatable && (image.alignment == 0 || image.alignment > kMostAlignment))
    return refuse(ErrorCode::Invalid, "the bzImage asks for an impossible alignment");

  KernelRoom room;
  room.pieces = {{GuestPhys(image.preferred_start), room_size}};
  room.alignment = image.relocatable ? image.alignment : 0;
  room.initrd_end = std::uint64_t{image.initrd_last} + 1;
  const Placement place =
      TRY(place_kernel(room, request.initrd.size(), request.ram_size, kernel.name()));

  TRY(write_common(memory, request, place.initrd, image.command_line, BootState::Mode::Long64));
  TRY(put(memory, place.kernel.raw(), image.protected_mode, "the kernel"));
  TRY(write_zero_page(memory, request, place.initrd, &image));
  BootState state;
  state.protocol = BootProtocol::BzImage;
  state.entry = place.kernel.wrapping_add(kEntry64).raw();
  state.rsi = kZeroPage;
  state.rsp = kBootStack;
  state.cr3 = kBootTables;
  state.may_relocate = relocates_itself(kernel, request.command_line);
  return state;
}

Result<BootState> load_elf(const KernelFile& kernel, const BootImage& image,
                           const BootRequest& request, GuestMemory& memory) {
  const bool pvh = image.pvh_entry.has_value();
  if (!pvh && kernel.format() == KernelFile::Format::Elf32) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{}: a 32-bit kernel with neither a PVH note nor a Multiboot header",
                            kernel.name()));
  }
  BootState state;
  state.protocol = pvh ? BootProtocol::Pvh : BootProtocol::Elf64;
  state.mode = pvh ? BootState::Mode::Protected32 : BootState::Mode::Long64;
  state.entry = pvh ? *image.pvh_entry : image.entry;
  TRY(check_entry(image, state.entry, kernel.name()));
  const Placement place =
      TRY(place_kernel(image.room(), request.initrd.size(), request.ram_size, kernel.name()));

  TRY(write_common(memory, request, place.initrd, std::numeric_limits<std::uint64_t>::max(),
                   state.mode));
  TRY(load_segments(image, memory));
  TRY(write_start_info(memory, request, place.initrd));
  if (pvh) {
    state.rbx = kStartInfo;
    return state;
  }
  // A Linux without PVH takes its boot parameters from rsi at the same entry point.
  TRY(write_zero_page(memory, request, place.initrd, nullptr));
  state.rdi = kStartInfo;
  state.rsi = kZeroPage;
  state.rsp = kBootStack;
  state.cr3 = kBootTables;
  return state;
}

// Multiboot

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

/// As load_kernel: the image is an ELF file of either class, or a flat file that gives its
/// addresses; the initrd is its first module. Unsupported for a header that asks for a video mode
/// or a feature we do not know.
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

}  // namespace

Result<BootState> load_kernel(const KernelFile& kernel, const BootRequest& request,
                              GuestMemory& memory) {
  if (kernel.format() == KernelFile::Format::BzImage) return load_bz_image(kernel, request, memory);
  const auto header = find_multiboot_header(kernel.bytes());
  if (kernel.format() == KernelFile::Format::Flat) {
    if (header) return load_multiboot(kernel, *header, request, memory);
    return fail(ErrorCode::Invalid, fmt::format("{}: no Multiboot header", kernel.name()));
  }
  const BootImage image = TRY(read_boot_image(kernel.bytes(), kernel.name()));
  if (header && !image.pvh_entry) return load_multiboot(kernel, *header, request, memory);
  return load_elf(kernel, image, request, memory);
}

std::string_view name_of(BootProtocol protocol) {
  switch (protocol) {
    case BootProtocol::BzImage: return "bzImage";
    case BootProtocol::Pvh: return "PVH";
    case BootProtocol::Multiboot: return "Multiboot";
    case BootProtocol::Elf64: return "ELF";
  }
  __builtin_unreachable();
}

}  // namespace ringside::vmm::kvm
