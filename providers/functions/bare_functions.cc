#include "providers/functions/bare_functions.h"

#include <fmt/format.h>

#include <algorithm>

#include "providers/functions/function_form.h"
#include "providers/tracepoint/sites/function_sites.h"
#include "vmm/linux/text/kprobe_blacklist.h"

namespace ringside::providers {

using guest_linux::Symbol;

const Result<BareFunctions::Ranges>& BareFunctions::blacklist() {
  if (!blacklist_) {
    blacklist_ = guest_linux::read_kprobe_blacklist(text_, kernel_.symbols(), kernel_.types());
  }
  return *blacklist_;
}

/// Assemblers describe their functions, too (binutils 2.41 and later), with neither parameters nor
/// a result.
bool BareFunctions::is_of_c(const Symbol& function) const {
  const auto prototype = kernel_.prototype(function);
  if (!prototype) return false;
  const Type& type = kernel_.types()[*prototype];
  return type.kind == TypeKind::Function && (type.length != 0 || type.target != TypeId{});
}

Result<void> BareFunctions::check(const Symbol& function) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::Unsupported,
                fmt::format("{} has no ftrace site, and {}", function.name, why));
  };
  const auto modules = kernel_.symbols().modules();
  if (!modules[function.module].has_text_at(function.address)) {
    return refuse("is not in the kernel's text");
  }
  const FunctionForm form = function_form(function.name);
  if (form.is_cold) return refuse("is no function of its own: its function jumps to it");
  Symbol source = function;
  source.name = form.source;
  if (!is_of_c(function) && (form.source.empty() || !is_of_c(source))) {
    return refuse("the kernel's types do not show it to be a function of C");
  }
  const Result<Ranges>& kept = blacklist();
  if (!kept) return refuse(kept.error().message);
  const bool is_kept = std::ranges::any_of(
      *kept, [&](const auto& range) { return range.contains(function.address); });
  if (is_kept) return refuse("the kernel keeps its kprobes from it");
  return {};
}

Result<GuestVirt> BareFunctions::entry(const Symbol& function) {
  if (!good_.contains(function.address)) {
    TRY(check(function));
    good_.insert(function.address);
  }
  return after_landing_pad(text_, function);
}

}  // namespace ringside::providers
