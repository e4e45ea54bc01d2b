#include "providers/boot/boot_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "disasm/decoder.h"
#include "providers/trap_points/sites/function_sites.h"
#include "vmm/arch/arch.h"

namespace ringside::providers {
namespace {

using guest_linux::Kernel;

tl::unexpected<Error> refuse(GuestVirt at, std::string_view why) {
  return fail(ErrorCode::Unsupported,
              fmt::format("no probe can stand at {:#x}: {}", at.raw(), why));
}

using InstructionBytes = std::array<std::byte, arch::kLongestInstruction>;

/// The bytes of the instruction at `at`, in `room`; none where the file has none that decodes.
std::span<const std::byte> instruction_at(const GuestReader& text, GuestVirt at,
                                          InstructionBytes& room) {
  const auto in = disasm::decode(std::span(room).first(read_available(text, at, room)), at);
  return std::span(room).first(in ? in->length : 0);
}

}  // namespace

Result<ProbeSite> BootPoints::examine(GuestVirt at, SitePolicy policy) {
  const guest_linux::Symbol* function = kernel_.symbols().at(at);
  if (function == nullptr || !function->is_text()) {
    return refuse(at, "it is not in the kernel's text");
  }
  for (const auto& range : kernel_.forbidden_text()) {
    if (policy == SitePolicy::Normal && range.contains(at)) {
      return refuse(at, "the kernel cannot take a breakpoint in this part of its text");
    }
  }
  InstructionBytes room;
  const auto instruction = instruction_at(kernel_.text(), at, room);
  if (instruction.empty()) return refuse(at, "it does not decode");
  if (const auto* site = Kernel::site_in(kernel_.patched_sites(), at, instruction.size())) {
    return refuse(at, fmt::format("{}, which the kernel patches", site->what));
  }
  return proven(at, instruction, policy);
}

bool BootPoints::is_patched_at_boot(GuestVirt at, std::size_t length) const {
  if (!kernel_.is_linux()) return false;
  const auto& patches = kernel_.patched_at_boot();
  return !patches || Kernel::site_in(*patches, at, length) != nullptr;
}

Result<void> BootPoints::bind(const ProbeSite& site, const Binding& binding) {
  if (is_complete_) {
    return fail(ErrorCode::Unsupported,
                "the probes of a machine that is traced from its first instruction are all chosen "
                "before it: enable them when tracing begins");
  }
  const GuestVirt at = site.address();
  if (!index_.find(at)) {
    const auto init = kernel_.init_text();
    const auto id = static_cast<std::uint32_t>(points_.size());
    points_.push_back(
        {at, is_patched_at_boot(at, site.instruction().size()), init && init->contains(at)});
    index_.insert(at, id);
  }
  bound_.added.push_back({at, binding});
  return {};
}

DispatchTable::Change BootPoints::take_bound() {
  is_complete_ = true;
  return std::exchange(bound_, {});
}

std::optional<GuestVirt> BootPoints::marker(std::string_view function) const {
  const guest_linux::Symbol* symbol = kernel_.symbols().find(function);
  if (symbol == nullptr || !symbol->is_text()) return std::nullopt;
  // After the ftrace site, which the kernel compares before it patches it.
  const auto site = entry_site(kernel_.text(), *symbol, &kernel_.symbols());
  const GuestVirt at = site ? *site : symbol->address;
  InstructionBytes room;
  const std::size_t length = instruction_at(kernel_.text(), at, room).size();
  return is_patched_at_boot(at, length) ? std::nullopt : std::optional(at);
}

}  // namespace ringside::providers
