#include <algorithm>
#include <array>

#include "tests/fuzz/kernel_input.h"
#include "tests/fuzz/ram_input.h"
#include "vmm/base/check.h"
#include "vmm/linux/kernel_memory.h"

namespace ringside::fuzz {
namespace {

using namespace guest_linux;

constexpr std::uint64_t kInfo = 0x9000;

void check_info(const VmcoreInfo& info) {
  CHECK(!info.release().empty() && info.text().size() <= 4096);
  CHECK(std::ranges::all_of(info.release(), [](char c) { return c >= ' ' && c < 0x7f; }));
  CHECK(info.symbol("_stext") && info.symbol("swapper_pg_dir") && info.number("phys_base"));
  const auto again = VmcoreInfo::parse(info.text());
  CHECK(again && again->text() == info.text() && again->release() == info.release());
}

void check_copies(const KernelMemory& kernel, FuzzScript& script) {
  const GuestVirt from(*kernel.info().symbol("_stext"));
  const GuestVirt at(script.take<std::uint64_t>());
  const std::uint64_t size = script.take<std::uint32_t>();
  for (const GuestVirt begin : {from, at}) {
    const auto copy = kernel.copy_image(begin, size);
    CHECK(!copy || (copy->size() == size && size <= kRam));
  }
  CHECK(kernel.copy_whole_image().size() <= kMaxCopy);
  std::array<std::byte, 64> bytes{};
  const auto read = kernel.reader().read(at, bytes);
  CHECK(read || read.error().address - at.raw() < bytes.size());
}

}  // namespace

std::size_t read_vmcoreinfo(std::span<const std::byte> input) {
  FuzzScript script(input);
  const GuestInput pieces(script);
  InputMachine machine(pieces, script.take<std::uint64_t>());
  const auto all = find_vmcoreinfo(machine.memory(), [](const VmcoreInfo&) { return true; });
  CHECK(all.size() <= kMostVmcoreInfos);
  std::ranges::for_each(all, check_info);
  const auto kernel = find_kernel_memory(machine);
  const auto again = find_kernel_memory(machine);
  CHECK(kernel.has_value() == again.has_value());
  if (!kernel) {
    CHECK(kernel.error().message == again.error().message);
    return 0;
  }
  CHECK(kernel->info().text() == again->info().text());
  CHECK(kernel->table().root == again->table().root);
  check_copies(*kernel, script);
  return all.size();
}

Inputs vmcoreinfo_inputs() {
  std::string note("\x0b\0\0\0\0\4\0\0\0\0\0\0VMCOREINFO\0\0", 24);
  Ram with_forgery;
  with_forgery.map(kImage + 0x3000, 0xd000);
  with_forgery.put_text(kInfo, info_text()).put_text(0xa000, info_text(kImage + 0x3000));
  return {Ram().put_text(kInfo, info_text()).input(),
          Ram().put_text(kInfo, note + info_text()).input(), with_forgery.input()};
}

}  // namespace ringside::fuzz
