#include "vmm/kvm/vcpu/io_exits.h"

#include <linux/kvm.h>

#include <algorithm>
#include <cstring>

#include "vmm/kvm/devices/little_endian.h"

namespace ringside::vmm::kvm {
namespace {

using Kind = VcpuEvent::Kind;

/// A bus takes 1, 2, 4 or 8 bytes; an access that KVM split at a page's end comes as any number.
bool is_whole(std::size_t size) {
  return size == 1 || size == 2 || size == 4 || size == 8;
}

void access_bus(const Bus& bus, std::uint64_t address, std::span<std::byte> data, bool write) {
  if (write) return bus.write(address, data);
  std::memset(data.data(), 0, data.size());
  bus.read(address, data);
}

}  // namespace

void IoExits::on_port(std::span<std::byte> data) {
  const auto& io = exit_.state().io;
  const bool out = io.direction == KVM_EXIT_IO_OUT;
  // A string instruction brings `count` accesses of `size` bytes each.
  for (std::size_t at = 0; is_whole(io.size) && at + io.size <= data.size(); at += io.size) {
    access_bus(ports_, io.port, data.subspan(at, io.size), out);
  }
  const Kind kind = out ? Kind::PortOut : Kind::PortIn;
  if (!subscription_.wants(kind) || data.size() < io.size) return;
  subscription_.tell(exit_, {kind, 0, {io.port, io.size, io.count, value_of(data.first(io.size))}});
}

void IoExits::on_mmio() {
  auto& mmio = kvm_.state().mmio;
  const auto data = std::as_writable_bytes(std::span(mmio.data)).first(std::min(mmio.len, 8u));
  const bool write = mmio.is_write != 0;
  const std::size_t step = is_whole(data.size()) ? data.size() : 1;
  for (std::size_t at = 0; at < data.size(); at += step) {
    access_bus(mmio_, mmio.phys_addr + at, data.subspan(at, step), write);
  }
  const Kind kind = write ? Kind::MmioWrite : Kind::MmioRead;
  if (subscription_.wants(kind)) {
    subscription_.tell(exit_, {kind, 0, {mmio.phys_addr, data.size(), value_of(data)}});
  }
}

void IoExits::on_msr_read() {
  auto& msr = kvm_.state().msr;
  const auto value = kvm_.msr(msr.index);
  msr.error = value ? 0 : 1;
  msr.data = value.value_or(0);
  if (subscription_.wants(Kind::MsrRead))
    subscription_.tell(exit_, {Kind::MsrRead, 0, {msr.index, msr.data}});
}

void IoExits::on_msr_write() {
  auto& msr = kvm_.state().msr;
  msr.error = kvm_.set_msr(msr.index, msr.data) ? 0 : 1;
  if (subscription_.wants(Kind::MsrWrite))
    subscription_.tell(exit_, {Kind::MsrWrite, 0, {msr.index, msr.data}});
}

}  // namespace ringside::vmm::kvm
