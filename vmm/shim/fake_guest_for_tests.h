// A guest for the tests of the shim: RAM with page tables that map one large page of kernel image,
// and a machine around it. Not linked into the product.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <vector>

#include "guest-shim/mailbox_abi.h"
#include "vmm/inert_machine_for_tests.h"
#include "vmm/shim/plain_region_for_tests.h"
#include "vmm/shim/shim.h"

namespace ringside::vmm::shim_fakes {

inline constexpr std::uint64_t kMiB = 1 << 20;
inline constexpr std::uint64_t kRam = 64 * kMiB;
inline constexpr GuestVirt kImage{0xffffffff81000000};
inline constexpr GuestVirt kIdt{kImage.raw() + 0x1000};
inline constexpr GuestVirt kHandler{kImage.raw() + 0x2000};
inline constexpr GuestPhys kRoot{0x1000}, kPud{0x2000}, kPmd{0x3000}, kImagePhys{2 * kMiB};
inline constexpr GuestPhys kIdtPud{0x4000}, kIdtTable{0x6000};
inline constexpr GuestVirt kIdtOfCpus{0xfffffe0000000000};
inline constexpr GuestPhys kIsolatedRoot{0x8000}, kUserPmd{0xb000};
inline constexpr GuestPhys kPlace{32 * kMiB};
inline constexpr GuestVirt kText{kImage.raw() + 0x3000};

/// RAM with a four-level table that maps one large page of kernel image, and its interrupt table
/// once more where the CPUs have it; a machine around it.
class FakeGuest final : public InertMachine {
 public:
  FakeGuest() {
    void* ram = mmap(nullptr, kRam, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ram_ = {static_cast<std::byte*>(ram), kRam};
    memory_ = GuestMemory({{GuestPhys(0), ram_}});
    put64(kRoot.raw() + 8 * 511, kPud.raw() | 3);
    put64(kPud.raw() + 8 * 510, kPmd.raw() | 3);
    put64(kPmd.raw() + 8 * 8, kImagePhys.raw() | 0x83);
    put64(kRoot.raw() + 8 * 508, kIdtPud.raw() | 3);
    put64(kIdtPud.raw(), (kIdtPud.raw() + 0x1000) | 3);
    put64(kIdtPud.raw() + 0x1000, kIdtTable.raw() | 3);
    put64(kIdtTable.raw(), (kImagePhys.raw() + 0x1000) | 1);
    set_gate(kHandler, 0x8e00);
    first.efer = 0xd01;
    first.cr0 = 0x80050033;
    first.cr3 = kRoot.raw();
  }
  FakeGuest(const FakeGuest&) = delete;
  FakeGuest& operator=(const FakeGuest&) = delete;
  ~FakeGuest() override { munmap(ram_.data(), ram_.size()); }

  void put64(std::uint64_t at, std::uint64_t value) {
    std::memcpy(ram_.data() + at, &value, sizeof value);
  }
  std::uint64_t get64(std::uint64_t at) const {
    std::uint64_t value;
    std::memcpy(&value, ram_.data() + at, sizeof value);
    return value;
  }
  void set_gate(GuestVirt handler, std::uint64_t attributes) {
    const std::uint64_t h = handler.raw();
    put64(gate_at(), (h & 0xffff) | 0x10 << 16 | attributes << 32 | (h >> 16 & 0xffff) << 48);
    put64(gate_at() + 8, h >> 32);
  }
  GuestVirt gate_handler() const {
    const std::uint64_t low = get64(gate_at()), high = get64(gate_at() + 8);
    return GuestVirt((low & 0xffff) | (low >> 48) << 16 | high << 32);
  }
  /// From now on as a machine whose RAM is not mapped here.
  void reach_by_copies() { reach_by(std::make_shared<AliasedBytes>(ram_)); }
  void reach_by(std::shared_ptr<CopiedBytes> bytes) {
    memory_ = GuestMemory::by_copies({{GuestPhys(0), kRam, std::move(bytes), 0}});
  }
  std::uint64_t pmd(unsigned index) const { return get64(kPmd.raw() + 8 * index); }
  std::span<std::byte> ram() { return ram_; }

  /// Isolates the page tables as Linux does: the user half maps the image's page with the handler
  /// and the interrupt table, which the CPUs know by another address. See isolated_facts().
  void isolate() {
    put64(kIsolatedRoot.raw() + 8 * 511, kPud.raw() | 3);
    put64(kIsolatedRoot.raw() + 8 * 508, kIdtPud.raw() | 3);
    const std::uint64_t user = kIsolatedRoot.raw() + 0x1000;
    put64(user + 8 * 511, (user + 0x1000) | 3);
    put64(user + 0x1000 + 8 * 510, kUserPmd.raw() | 3);
    put64(kUserPmd.raw() + 8 * 8, kImagePhys.raw() | 0x83);
    put64(user + 8 * 508, (user + 0x3000) | 3);
    put64(user + 0x3000, (user + 0x4000) | 3);
    put64(user + 0x4000, (user + 0x5000) | 3);
    put64(user + 0x5000, (kImagePhys.raw() + 0x1000) | 1);
    first.cr3 = user;  // in user mode
  }
  std::uint64_t user_pmd(unsigned index) const { return get64(kUserPmd.raw() + 8 * index); }

  unsigned count() const override { return vcpus; }
  pid_t host_process() const override { return process; }
  GuestMemory& memory() override { return memory_; }

  unsigned vcpus = 2;
  pid_t process = 0;  // of the host, that runs it; 0: none
  Registers first;
  Registers others;  // of all vCPUs but 0: not started

 protected:
  Result<Registers> registers(unsigned vcpu) override { return vcpu == 0 ? first : others; }

 private:
  static std::uint64_t gate_at() { return kImagePhys.raw() + 0x1000 + 3 * 16; }
  std::span<std::byte> ram_;
  GuestMemory memory_;
};

inline ShimKernelFacts facts() {
  ShimKernelFacts out;
  out.kernel_table = PageTable{kRoot, 4, 0};
  out.image_region_start = GuestVirt(0xffffffff80000000);
  out.image_region_end = GuestVirt(0xffffffffc0000000);
  out.image_end = GuestVirt(kImage.raw() + 0x180000);
  out.this_cpu_off = 0x1fb88;
  out.idt = kIdt;
  out.idt_of_cpus = kIdtOfCpus;
  out.int3_handler = kHandler;
  return out;
}

inline ShimKernelFacts isolated_facts() {
  ShimKernelFacts out = facts();
  out.kernel_table.root = kIsolatedRoot;
  out.page_table_isolation = true;
  return out;
}

inline Result<std::unique_ptr<Shim>> install(FakeGuest& guest,
                                             const ShimKernelFacts& with = facts(),
                                             GuestMemory::Extent place = {kPlace, 16 * kMiB}) {
  PausedMachine paused = TRY(PausedMachine::pause(guest));
  return Shim::install(paused, place, with);
}

/// In the first megabyte, where nothing is aligned to anything but pages.
inline constexpr GuestMemory::Extent kLow{GuestPhys(0x21000), 400 << 10};

/// The number of the directory's entry that leads to it.
inline unsigned home_of(const shim_header& header) {
  EXPECT_GE(header.base, 0xffffffff81200000u) << "behind the image";
  return static_cast<unsigned>((header.base - 0xffffffff80000000) / (2 * kMiB));
}

inline shim_header header_at(FakeGuest& guest, GuestPhys place) {
  shim_header header;
  std::memcpy(&header, guest.ram().data() + place.raw(), sizeof header);
  return header;
}

/// All of RAM but where the test's vCPUs write.
inline std::vector<std::byte> image_of(FakeGuest& guest) {
  return {guest.ram().begin(), guest.ram().end()};
}

}  // namespace ringside::vmm::shim_fakes
