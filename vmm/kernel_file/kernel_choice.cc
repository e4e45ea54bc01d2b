#include "vmm/kernel_file/kernel_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "vmm/kernel_file/bz_image.h"
#include "vmm/kernel_file/elf_file.h"

namespace ringside::vmm {
namespace {

bool has_pvh_note(std::span<const std::byte> elf) {
  const auto file = ElfFile::parse(elf);
  return file && file->pvh_entry();
}

/// Whether `word` is one of the words of the command line.
bool has_word(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (text.substr(0, end) == word) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

}  // namespace

Result<KernelFile> open_kernel(const std::string& path, BootPreference way) {
  KernelFile file = TRY(KernelFile::open(path));
  const bool packed = file.format() == KernelFile::Format::BzImage;
  if (way == BootPreference::BzImage) {
    if (packed) return file;
    return fail(ErrorCode::Unsupported,
                fmt::format("{} is no bzImage: leave --boot bzimage away", path));
  }
  if (!packed && way == BootPreference::Auto) return file;
  const auto elf = file.elf();
  if (elf && has_pvh_note(*elf)) return file.elf_file();
  if (way == BootPreference::Auto) return file;
  if (!elf) return tl::make_unexpected(elf.error());
  return fail(ErrorCode::Unsupported,
              fmt::format("{} has no PVH entry (CONFIG_PVH): leave --boot pvh away", path));
}

bool relocates_itself(const KernelFile& file, std::string_view command_line) {
  if (file.format() != KernelFile::Format::BzImage) return false;
  const auto image = read_bz_image(file.bytes(), file.name());
  return image && image->relocatable && !has_word(command_line, "nokaslr");
}

}  // namespace ringside::vmm
