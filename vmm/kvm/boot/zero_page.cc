// Linux's struct boot_params, the "zero page" (Documentation/arch/x86/zero-page.rst and boot.rst).
#include <algorithm>
#include <array>
#include <cstring>

#include "vmm/kvm/boot/boot_data.h"
#include "vmm/kvm/boot/layout.h"

namespace ringside::vmm::kvm {
namespace {

constexpr std::size_t kSize = 4096;
constexpr std::size_t kRsdp = 0x070;
constexpr std::size_t kInitrdHigh = 0x0c0, kInitrdSizeHigh = 0x0c4;  // ext_ramdisk_image, _size
constexpr std::size_t kE820Count = 0x1e8;
constexpr std::size_t kVideoMode = 0x1fa;
constexpr std::size_t kBootFlag = 0x1fe;
constexpr std::size_t kMagic = 0x202;
constexpr std::size_t kVersion = 0x206;
constexpr std::size_t kLoader = 0x210;
constexpr std::size_t kLoadFlags = 0x211;
constexpr std::size_t kInitrd = 0x218, kInitrdSize = 0x21c;
constexpr std::size_t kCommandLineAt = 0x228;
constexpr std::size_t kHeaderEnd = 0x290;  // where the next field lies
constexpr std::size_t kE820 = 0x2d0;
constexpr std::size_t kMostE820 = 128;

constexpr std::uint8_t kNoNumber = 0xff;  // a boot loader without a number of its own
constexpr std::uint8_t kLoadedHigh = 1;

struct Page {
  std::array<std::byte, kSize> bytes{};

  template <class T>
  void set(std::size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof value);
  }
};

/// An ELF image has no setup header; Linux reads only these fields of it once it runs.
void fill_header(Page& page) {
  page.set(kBootFlag, std::uint16_t{0xaa55});
  page.set(kMagic, std::uint32_t{0x5372'6448});
  page.set(kVersion, std::uint16_t{0x020f});
  page.set(kLoadFlags, kLoadedHigh);
}

}  // namespace

Result<void> write_zero_page(GuestMemory& memory, const BootRequest& request, GuestPhys initrd,
                             const BzImage* image) {
  Page page;
  if (image == nullptr) {
    fill_header(page);
  } else {
    const std::size_t size = std::min(image->header.size(), kHeaderEnd - kSetupHeader);
    std::copy_n(image->header.begin(), size, page.bytes.begin() + kSetupHeader);
  }
  page.set(kLoader, kNoNumber);
  page.set(kVideoMode, std::uint16_t{0xffff});  // normal
  page.set(kCommandLineAt, static_cast<std::uint32_t>(kCommandLine));
  if (request.rsdp) page.set(kRsdp, request.rsdp->raw());
  if (!request.initrd.empty()) {
    const std::uint64_t size = request.initrd.size();
    page.set(kInitrd, static_cast<std::uint32_t>(initrd.raw()));
    page.set(kInitrdHigh, static_cast<std::uint32_t>(initrd.raw() >> 32));
    page.set(kInitrdSize, static_cast<std::uint32_t>(size));
    page.set(kInitrdSizeHigh, static_cast<std::uint32_t>(size >> 32));
  }
  std::size_t count = 0;
  for (const E820Entry& entry : memory_map(request.ram_size)) {
    if (count == kMostE820) break;
    const std::size_t at = kE820 + count * 20;
    page.set(at, entry.base);
    page.set(at + 8, entry.size);
    page.set(at + 16, static_cast<std::uint32_t>(entry.type));
    ++count;
  }
  page.set(kE820Count, static_cast<std::uint8_t>(count));
  return put(memory, kZeroPage, page.bytes, "the boot parameters");
}

}  // namespace ringside::vmm::kvm
