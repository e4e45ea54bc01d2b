#include "vmm/linux/stacks/stack_size.h"

#include <string_view>

#include "vmm/arch/arch.h"

namespace ringside::guest_linux {
namespace {

constexpr std::uint64_t kUsualStack = 16 << 10;  // THREAD_SIZE without KASAN
constexpr std::uint64_t kLargestStack = 1 << 20;

}  // namespace

std::uint64_t kernel_stack_bytes(const SymbolTable& symbols) {
  std::uint64_t size = kUsualStack;
  const auto between = [&](std::string_view start, std::string_view end) {
    const Symbol* low = symbols.find(start, "vmlinux");
    const Symbol* high = symbols.find(end, "vmlinux");
    if (low == nullptr || high == nullptr || high->address <= low->address) return;
    const std::uint64_t bytes = high->address.offset_from(low->address);
    if (bytes <= kLargestStack && bytes % arch::kPageSize == 0) size = bytes;
  };
  between("__start_init_task", "__end_init_task");    // 4.16 to 6.9
  between("__start_init_stack", "__end_init_stack");  // since 6.10
  return size;
}

}  // namespace ringside::guest_linux
