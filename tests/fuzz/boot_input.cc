#include "tests/fuzz/boot_input.h"

#include <string>
#include <utility>

#include "vmm/base/check.h"
#include "vmm/kernel_file/kernel_file.h"
#include "vmm/kvm/boot/boot.h"
#include "vmm/testing/sample_kernels.h"

namespace ringside::fuzz {
namespace {

constexpr std::size_t kRam = std::size_t{64} << 20;

/// One for all inputs: clearing it would take longer than what is tested.
vmm::GuestMemory& memory() {
  static std::vector<std::byte> ram(kRam);
  static vmm::GuestMemory memory({{GuestPhys(0), ram}});
  return memory;
}

void check(const Error& error) {
  CHECK(!error.message.empty());
  CHECK(error.message.find('\n') == std::string::npos);
}

}  // namespace

void boot(std::span<const std::byte> file) {
  const auto kernel = vmm::KernelFile::parse({file.begin(), file.end()}, "kernel");
  if (!kernel) return check(kernel.error());
  if (const auto elf = kernel->elf(); !elf) check(elf.error());
  const std::vector<std::byte> initrd(5000, std::byte{1});
  vmm::kvm::BootRequest request;
  request.initrd = initrd;
  request.command_line = "console=ttyS0 nokaslr";
  request.ram_size = kRam;
  request.rsdp = GuestPhys(vmm::kvm::kAcpiTables);
  const auto state = vmm::kvm::load_kernel(*kernel, request, memory());
  if (!state) return check(state.error());
  CHECK(state->entry >= vmm::kvm::kKernelStart && state->entry < kRam);
}

std::vector<std::vector<std::byte>> elf_kernels() {
  using namespace vmm::testing;
  SampleElf pvh;
  pvh.pvh_entry = 0x100020;
  pvh.segments.push_back({0xffff'8000'0020'0000, 0x200000, 0x5000, Bytes(16)});
  SampleElf multiboot;
  multiboot.is_64 = false;
  multiboot.machine = 3;
  multiboot.segments[0].bytes = sample_multiboot_header(3);
  return {sample_elf({}), sample_elf(pvh), sample_elf(multiboot), sample_flat_kernel()};
}

std::vector<std::vector<std::byte>> bz_images() {
  using namespace vmm::testing;
  std::vector<std::vector<std::byte>> images;
  for (const char* packing : {"gzip", "xz", "lzma", "zstd", "lz4", "bzip2"}) {
    SampleBzImage image;
    image.payload = packed(sample_elf({}), packing);
    images.push_back(sample_bz_image(image));
  }
  return images;
}

}  // namespace ringside::fuzz
