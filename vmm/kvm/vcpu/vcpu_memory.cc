#include "vmm/kvm/vcpu/vcpu_memory.h"

#include <algorithm>

#include "vmm/page_walk.h"

namespace ringside::vmm::kvm {

std::optional<GuestPhys> VcpuMemory::locate(const Registers& registers, GuestVirt at) const {
  if (!arch::pages(registers)) return GuestPhys(at.raw());
  if (!arch::in_long_mode(registers)) return kvm_.translate(at);
  const auto found = translate(ram_, arch::page_table_of(registers), at);
  if (!found) return std::nullopt;
  return found->address;
}

std::size_t VcpuMemory::read_code(const Registers& registers, GuestVirt at,
                                  std::span<std::byte> code) const {
  std::size_t done = 0;
  while (done < code.size()) {
    const GuestVirt next = at.wrapping_add(done);
    const std::size_t length =
        std::min<std::size_t>(code.size() - done, arch::left_in_page(next.raw()));
    const auto where = locate(registers, next);
    if (!where || !ram_.read(*where, code.subspan(done, length))) break;
    done += length;
  }
  return done;
}

std::optional<GuestPhys> VcpuStack::locate_word(GuestVirt at) const {
  if (arch::left_in_page(at.raw()) < sizeof(std::uint64_t) || registers_.in_user_mode()) {
    return std::nullopt;
  }
  return memory_.locate(registers_, at);
}

std::optional<std::uint64_t> VcpuStack::load(GuestVirt at) {
  std::uint64_t value = 0;
  const auto where = locate_word(at);
  if (!where || !memory_.ram().read(*where, std::as_writable_bytes(std::span(&value, 1)))) {
    return std::nullopt;
  }
  return value;
}

bool VcpuStack::store(GuestVirt at, std::uint64_t value) {
  const auto where = locate_word(at);
  return where && memory_.ram().write(*where, std::as_bytes(std::span(&value, 1)));
}

}  // namespace ringside::vmm::kvm
