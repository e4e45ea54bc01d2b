#include "vmm/kernel_choice.h"

#include <fmt/format.h>

#include "vmm/kvm/boot/elf_image.h"

namespace ringside::vmm {
namespace {

bool has_pvh_note(std::span<const std::byte> elf, const std::string& name) {
  const auto image = kvm::read_elf_image(elf, name);
  return image && image->pvh_entry;
}

}  // namespace

Result<KernelFile> open_kernel(const std::string& path, BootWay way) {
  KernelFile file = TRY(KernelFile::open(path));
  const bool packed = file.format() == KernelFile::Format::BzImage;
  if (way == BootWay::BzImage) {
    if (packed) return file;
    return fail(ErrorCode::Unsupported,
                fmt::format("{} is no bzImage: leave --boot bzimage away", path));
  }
  if (!packed && way == BootWay::Auto) return file;
  const auto elf = file.elf();
  if (elf && has_pvh_note(*elf, path)) return file.elf_file();
  if (way == BootWay::Auto) return file;
  if (!elf) return tl::make_unexpected(elf.error());
  return fail(ErrorCode::Unsupported,
              fmt::format("{} has no PVH entry (CONFIG_PVH): leave --boot pvh away", path));
}

}  // namespace ringside::vmm
