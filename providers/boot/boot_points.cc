#include "providers/boot/boot_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "disasm/decoder.h"
#include "providers/tracepoint/function_sites.h"

namespace ringside::providers {
namespace {

using guest_linux::Kernel;

tl::unexpected<Error> refuse(GuestVirt at, std::string_view why) {
  return fail(ErrorCode::Unsupported,
              fmt::format("no probe can stand at {:#x}: {}", at.raw(), why));
}

/// Bytes of the instruction at `at`; 0 where the file has none that decodes.
std::size_t length_at(const GuestReader& text, GuestVirt at) {
  std::array<std::byte, disasm::kLongestInstruction> bytes{};
  const auto read = text.read(at, bytes);
  const std::size_t size = read ? bytes.size() : read.error().address - at.raw();
  if (size > bytes.size()) return 0;
  const auto in = disasm::decode(std::span(bytes).first(size), at);
  return in ? in->length : 0;
}

}  // namespace

Result<void> BootPoints::check(GuestVirt at, Policy policy) const {
  const guest_linux::Symbol* function = kernel_.symbols().at(at);
  if (function == nullptr || !function->is_text()) {
    return refuse(at, "it is not in the kernel's text");
  }
  for (const auto& range : kernel_.forbidden_text()) {
    if (policy == Policy::Normal && range.contains(at)) {
      return refuse(at, "the kernel cannot take a breakpoint in this part of its text");
    }
  }
  const std::size_t length = length_at(kernel_.text(), at);
  if (length == 0) return refuse(at, "it does not decode");
  if (const auto* site = Kernel::site_in(kernel_.patched_sites(), at, length)) {
    return refuse(at, fmt::format("{}, which the kernel patches", site->what));
  }
  return {};
}

bool BootPoints::is_patched_at_boot(GuestVirt at) const {
  if (!kernel_.is_linux()) return false;
  const auto& patches = kernel_.patched_at_boot();
  return !patches || Kernel::site_in(*patches, at, length_at(kernel_.text(), at)) != nullptr;
}

Result<void> BootPoints::bind(GuestVirt at, Policy policy, const Binding& binding) {
  auto id = index_.find(at);
  if (!id) {
    TRY(check(at, policy));
    const auto init = kernel_.init_text();
    id = static_cast<std::uint32_t>(points_.size());
    points_.push_back({at, is_patched_at_boot(at), init && init->contains(at)});
    index_.insert(at, *id);
  }
  dispatcher_->add({*id}, binding);
  return {};
}

std::optional<GuestVirt> BootPoints::marker(std::string_view function) const {
  const guest_linux::Symbol* symbol = kernel_.symbols().find(function);
  if (symbol == nullptr || !symbol->is_text()) return std::nullopt;
  // Behind the ftrace site, which the kernel compares before it patches it.
  const auto site = entry_site(kernel_.text(), *symbol, &kernel_.symbols());
  const GuestVirt at = site ? *site : symbol->address;
  return is_patched_at_boot(at) ? std::nullopt : std::optional(at);
}

}  // namespace ringside::providers
