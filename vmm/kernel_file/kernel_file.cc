// Kernel files: which kind it is, what it is instead when it is none, the packed ELF image, the
// choice how it is started.
#include "vmm/kernel_file/kernel_file.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "vmm/base/unique_fd.h"
#include "vmm/guest_config.h"
#include "vmm/kernel_file/boot_headers.h"
#include "vmm/kernel_file/elf_file.h"
#include "vmm/kernel_file/unpack.h"

namespace ringside::vmm {
namespace {

constexpr std::uint64_t kMostFile = std::uint64_t{2} << 30;  // vmlinux with all its DWARF fits

/// A magic number at its place in a file, and the kind of file that has it.
struct Signature {
  std::size_t at;
  std::string_view bytes, what;
};

using std::string_view_literals::operator""sv;
constexpr std::array kNoKernels{
    Signature{56, "ARM\x64"sv, "a kernel for arm64: take one built for x86-64"},
    Signature{56, "RSC\x05"sv, "a kernel for RISC-V: take one built for x86-64"},
    Signature{36, "\x18\x28\x6f\x01"sv, "a kernel for arm: take one built for x86-64"},
    Signature{4, "zimg"sv, "a kernel in EFI's zboot form: take its vmlinux"},
    Signature{0, "MZ"sv, "an EFI or Windows program, not a kernel"},
    Signature{0, "070701"sv, "an initramfs (cpio), not a kernel"},
    Signature{0, "QFI\xfb"sv, "a disk image (qcow2), not a kernel"},
    Signature{0, "!<arch>"sv, "an archive: take the vmlinuz in it"},
    Signature{0, "\x04\x22\x4d\x18"sv, "packed with lz4: unpack it first"},
};

std::string_view machine_name(unsigned machine) {
  switch (machine) {
    case EM_386: return "x86 (32 bits)";
    case EM_X86_64: return "x86-64";
    case EM_AARCH64: return "arm64";
    case EM_ARM: return "arm";
    case EM_RISCV: return "RISC-V";
    case EM_PPC64: return "ppc64";
    case EM_PPC: return "ppc";
    case EM_S390: return "s390";
    case EM_MIPS: return "MIPS";
    case 258: return "LoongArch";
    case EM_SPARCV9: return "sparc64";
    default: return {};
  }
}

std::string what_it_is(std::span<const std::byte> bytes) {
  for (const Signature& signature : kNoKernels) {
    const std::size_t size = signature.bytes.size();
    if (bytes.size() >= signature.at + size &&
        std::memcmp(bytes.data() + signature.at, signature.bytes.data(), size) == 0)
      return std::string(signature.what);
  }
  const std::string_view packing = packing_of(bytes);
  if (!packing.empty()) return fmt::format("packed with {}: unpack it first", packing);
  return "no kernel: it takes a bzImage (vmlinuz), a vmlinux, or an ELF file";
}

/// The header's machine and type, whatever its byte order and class.
Result<KernelFile::Format> check_elf(std::span<const std::byte> bytes, std::string_view name) {
  const auto invalid = [&](std::string_view what) {
    return fail(ErrorCode::Invalid, fmt::format("{}: {}", name, what));
  };
  if (bytes.size() < sizeof(Elf32_Ehdr)) return invalid("the ELF file is cut short: copy it again");
  const auto octet = [&](std::size_t at) { return std::to_integer<unsigned>(bytes[at]); };
  const bool big = octet(EI_DATA) == ELFDATA2MSB;
  const auto half = [&](std::size_t at) {
    return big ? octet(at) << 8 | octet(at + 1) : octet(at + 1) << 8 | octet(at);
  };
  const unsigned machine = half(offsetof(Elf64_Ehdr, e_machine));
  const bool is_64 = octet(EI_CLASS) == ELFCLASS64;
  if (big || machine != (is_64 ? EM_X86_64 : EM_386)) {
    const std::string_view known = machine_name(machine);
    return invalid(
        known.empty()
            ? fmt::format("a program for machine {}: take a kernel built for x86-64", machine)
            : fmt::format("a kernel for {}: take one built for x86-64", known));
  }
  if (is_64 && bytes.size() < sizeof(Elf64_Ehdr))
    return invalid("the ELF file is cut short: copy it again");
  switch (half(offsetof(Elf64_Ehdr, e_type))) {
    case ET_EXEC:
    case ET_DYN: break;
    case ET_REL: return invalid("an object file or a module: link it first");
    case ET_CORE: return invalid("a core dump, not a kernel");
    default: return invalid("an ELF file of unknown type, not a kernel");
  }
  return is_64 ? KernelFile::Format::Elf64 : KernelFile::Format::Elf32;
}

Result<KernelFile::Format> format_of(std::span<const std::byte> bytes, std::string_view name) {
  if (bytes.empty())
    return fail(ErrorCode::Invalid, fmt::format("{}: the file is empty: copy it again", name));
  if (is_bz_image(bytes)) {
    TRY(read_bz_image(bytes, name));
    return KernelFile::Format::BzImage;
  }
  if (bytes.size() >= SELFMAG && std::memcmp(bytes.data(), ELFMAG, SELFMAG) == 0)
    return check_elf(bytes, name);
  const auto multiboot = find_multiboot_header(bytes);
  if (multiboot && multiboot->addresses) return KernelFile::Format::Flat;
  return fail(ErrorCode::Invalid, fmt::format("{}: {}", name, what_it_is(bytes)));
}

/// The whole file, mapped as long as the pointer or a copy of it lives.
struct MappedFile {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

Result<MappedFile> map_file(const std::string& path) {
  const auto failed = [&] { return Unexpected<Error>(unreadable(GuestFile::Kernel, path, errno)); };
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) return failed();
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return failed();
  if (!S_ISREG(status.st_mode)) {
    errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    return failed();
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > kMostFile)
    return fail(ErrorCode::Limit, fmt::format("{}: larger than 2 GiB: no kernel", path));
  if (size == 0) return MappedFile{};
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (start == MAP_FAILED) return failed();
  return MappedFile{{start, [size](const void* at) { ::munmap(const_cast<void*>(at), size); }},
                    {static_cast<const std::byte*>(start), size}};
}

}  // namespace

Result<KernelFile> KernelFile::open(const std::string& path) {
  MappedFile file = TRY(map_file(path));
  const Format format = TRY(format_of(file.bytes, path));
  return KernelFile(std::move(file.owner), file.bytes, path, format);
}

Result<KernelFile> KernelFile::parse(std::vector<std::byte> bytes, std::string name) {
  const Format format = TRY(format_of(bytes, name));
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> all = *owner;
  return KernelFile(std::move(owner), all, std::move(name), format);
}

Result<std::span<const std::byte>> KernelFile::elf() const {
  if (format_ == Format::Flat)
    return fail(ErrorCode::Unsupported, fmt::format("{}: no ELF file: it has no symbols", name_));
  if (format_ != Format::BzImage) return bytes_;
  if (unpacked_ != nullptr) return std::span<const std::byte>(*unpacked_);
  const BzImage image = TRY(read_bz_image(bytes_, name_));
  if (image.payload.empty())
    return fail(ErrorCode::Unsupported, fmt::format("{}: the bzImage has no payload", name_));
  auto unpacked = unpack(image.payload);
  if (!unpacked)
    return fail(unpacked.error().code,
                fmt::format("{}: its payload: {}", name_, unpacked.error().message));
  const Format inside = TRY(format_of(*unpacked, name_ + "'s payload"));
  if (inside != Format::Elf64)
    return fail(ErrorCode::Unsupported, fmt::format("{}: no 64-bit kernel inside", name_));
  unpacked_ = std::make_shared<const std::vector<std::byte>>(std::move(*unpacked));
  return std::span<const std::byte>(*unpacked_);
}

Result<KernelFile> KernelFile::elf_file() const {
  if (format_ != Format::BzImage) {
    TRY(elf());  // a flat file has none
    return *this;
  }
  const auto image = TRY(elf());
  return KernelFile(unpacked_, image, name_, Format::Elf64);
}

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
