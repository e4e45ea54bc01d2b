// Binding a VMCOREINFO to memory. In this file: address arithmetic, the checks, copies, the choice
// among several.
#include "vmm/linux/kernel_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <set>

#include "vmm/arch/arch.h"

namespace ringside::guest_linux {

namespace {

constexpr std::uint64_t kChunk = arch::kLargePageSize;  // the image is mapped by large pages

/// The root entry that maps the kernel's image: the last of 512.
std::optional<std::uint64_t> image_root_entry(const vmm::GuestMemory& memory, GuestPhys root) {
  const auto at = root.checked_add(std::uint64_t{511} * 8);
  return at ? memory.load64(*at) : std::nullopt;
}

}  // namespace

std::optional<GuestPhys> KernelMemory::image_address(const VmcoreInfo& info, GuestVirt at) {
  constexpr std::int64_t kHighest = std::int64_t{1} << 52;  // bits of a physical address
  const std::int64_t phys_base = info.number("phys_base").value_or(0);
  if (phys_base > kHighest || phys_base < -kHighest) return std::nullopt;
  if (!at.is_in(arch::kKernelImage, arch::kKernelImageSize)) return std::nullopt;
  // phys_base is negative when KASLR put the image lower than linked; the sum must not be.
  const auto in_image = static_cast<std::int64_t>(at.offset_from(arch::kKernelImage));
  const std::int64_t physical = in_image + phys_base;
  if (physical < 0) return std::nullopt;
  return GuestPhys(static_cast<std::uint64_t>(physical));
}

std::optional<KernelMemory> KernelMemory::bind(const vmm::GuestMemory& memory, VmcoreInfo info) {
  KernelMemory bound(memory, std::move(info));
  const auto root = bound.image_address(*bound.info_.symbol("swapper_pg_dir"));
  if (!root) return std::nullopt;
  bound.table_.root = *root;
  bound.table_.encryption_mask =
      static_cast<std::uint64_t>(bound.info_.number("sme_mask").value_or(0));
  bound.table_.levels = bound.info_.number("pgtable_l5_enabled").value_or(0) == 1 ? 5 : 4;
  if (!bound.is_consistent()) return std::nullopt;
  return bound;
}

bool KernelMemory::is_consistent() const {
  const auto maps_itself = [&](GuestVirt at) {
    const auto mapped = vmm::translate(*memory_, table_, at);
    return mapped && mapped->address == image_address(at);
  };
  if (!maps_itself(*info_.symbol("_stext")) || !maps_itself(*info_.symbol("swapper_pg_dir"))) {
    return false;
  }
  std::array<char, VmcoreInfo::kUtsField> release{};
  const GuestVirt at = info_.names().wrapping_add(2 * release.size());
  if (!reader().read(at, std::as_writable_bytes(std::span(release)))) return false;
  const std::string_view text(release.data(), release.size());
  return text.substr(0, text.find('\0')) == info_.release();
}

Result<std::vector<std::byte>> KernelMemory::copy_image(GuestVirt from, std::uint64_t size) const {
  const auto start = image_address(from);
  const auto end = from.checked_add(size);
  if (!start || size > kMaxCopy || !end || !image_address(*end)) {
    return fail(ErrorCode::Invalid,
                fmt::format("{} bytes at {:#x} are not in the kernel's image", size, from.raw()));
  }
  std::vector<std::byte> bytes(size);
  if (!memory_->read(*start, bytes)) {
    return fail(ErrorCode::Invalid,
                fmt::format("the kernel's image at {:#x} is not in RAM", from.raw()));
  }
  return bytes;
}

std::vector<std::byte> KernelMemory::copy_whole_image() const {
  const GuestVirt stext = *info_.symbol("_stext");
  std::vector<std::byte> bytes;
  for (std::uint64_t at = 0; at < kMaxCopy; at += kChunk) {
    const auto mapped = vmm::translate(*memory_, table_, stext.wrapping_add(at));
    if (!mapped) break;
    bytes.resize(at + kChunk);
    const auto chunk = std::span(bytes).subspan(at, kChunk);
    // A read that stops inside leaves zeroes: the decoders take them for no table.
    if (!memory_->read(mapped->address, chunk)) break;
  }
  return bytes;
}

bool runs_on(const vmm::GuestMemory& memory, const Registers& registers,
             const vmm::PageTable& table) {
  const auto ours = image_root_entry(memory, table.root);
  const std::uint64_t cr3 = registers.cr3 & ~table.encryption_mask;
  return ours && (image_root_entry(memory, arch::root_of(cr3)) == ours ||
                  image_root_entry(memory, arch::kernel_half_root(cr3)) == ours);
}

namespace {

/// Whether a vCPU runs this kernel.
Result<bool> is_in_use(vmm::PausedMachine& machine, const KernelMemory& kernel) {
  for (unsigned vcpu = 0; vcpu < machine.vcpu_count(); ++vcpu) {
    const Registers registers = TRY(machine.registers(vcpu));
    if (runs_on(machine.memory(), registers, kernel.table())) return true;
  }
  return false;
}

/// Two descriptions of one image mapping: one of them is forged.
bool share_image(const vmm::GuestMemory& memory, const std::vector<KernelMemory>& kernels) {
  std::set<std::optional<std::uint64_t>> seen;
  return !std::ranges::all_of(kernels, [&](const KernelMemory& kernel) {
    return seen.insert(image_root_entry(memory, kernel.table().root)).second;
  });
}

bool has_crashed(const KernelMemory& kernel) {
  return kernel.info().has_crashed();
}

/// Leaves the kernel that runs, with the one that crashed before it, among all that are consistent.
Result<void> choose(vmm::Machine& machine, std::vector<KernelMemory>& found) {
  vmm::PausedMachine paused = TRY(vmm::PausedMachine::pause(machine));
  std::vector<KernelMemory> in_use, others;
  for (KernelMemory& each : found) {
    const bool is_used = TRY(is_in_use(paused, each));
    (is_used ? in_use : others).push_back(std::move(each));
  }
  found.clear();
  if (share_image(paused.memory(), in_use)) return {};
  // A vCPU that its crash found elsewhere stays in the kernel that crashed.
  if (in_use.size() > 1) {
    // clang 14 does not compile what std::ranges::stable_partition returns.
    const auto dead = std::stable_partition(in_use.begin(), in_use.end(), std::not_fn(has_crashed));
    std::move(dead, in_use.end(), std::back_inserter(others));
    in_use.erase(dead, in_use.end());
  }
  if (in_use.size() != 1) return {};
  const auto dead = std::ranges::find_if(others, has_crashed);
  if (dead != others.end() && !has_crashed(in_use.front())) {
    in_use.front().set_crashed(std::move(*dead));
  }
  found = std::move(in_use);
  return {};
}

}  // namespace

Result<KernelMemory> find_kernel_memory(vmm::Machine& machine) {
  std::vector<KernelMemory> found;
  const auto describes_its_memory = [&](const VmcoreInfo& info) {
    return KernelMemory::bind(machine.memory(), info).has_value();
  };
  for (VmcoreInfo& info : find_vmcoreinfo(machine.memory(), describes_its_memory)) {
    auto bound = KernelMemory::bind(machine.memory(), std::move(info));
    if (bound) found.push_back(std::move(*bound));
  }
  if (found.empty()) {
    return fail(ErrorCode::NotFound, "no running Linux kernel in the guest's memory yet");
  }
  if (found.size() > 1) TRY(choose(machine, found));
  if (found.size() != 1) {
    return fail(
        ErrorCode::Invalid,
        "the guest's memory holds several descriptions of its kernel and no vCPU says which "
        "is real: something in the guest forges them");
  }
  return std::move(found.front());
}

Error lacks(const KernelMemory& memory, std::string_view what, std::string_view option) {
  return {ErrorCode::Unsupported,
          fmt::format("the guest's kernel {} {}: boot one built with {}, as distributions do",
                      memory.info().release(), what, option)};
}

}  // namespace ringside::guest_linux
