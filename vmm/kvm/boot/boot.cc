// load_kernel: which protocol a kernel file asks for, and the three that Linux knows. Multiboot is
// in multiboot.cc.
#include "vmm/kvm/boot/boot.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "vmm/kernel_file/bz_image.h"
#include "vmm/kernel_file/kernel_choice.h"
#include "vmm/kvm/boot/boot_data.h"
#include "vmm/kvm/boot/boot_image.h"
#include "vmm/kvm/boot/multiboot.h"
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
