// In this file, top to bottom: names that end a path, one instruction, calls and jumps, the walk.
#include "providers/trap_points/sites/code_walk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "providers/trap_points/sites/function_sites.h"
#include "vmm/arch/arch.h"

namespace ringside::providers {
namespace {

using disasm::Flow;
using guest_linux::Kernel;
using guest_linux::Symbol;

// The windows of 6.1 and 6.12 have some 1,500 instructions in 40 functions, six calls deep.
constexpr unsigned kMaxSteps = 50'000;
constexpr unsigned kMaxDepth = 64;

tl::unexpected<Error> cannot_follow(GuestVirt at, const Kernel& kernel, std::string_view why) {
  return fail(ErrorCode::Unsupported, fmt::format("{} at {}", why, kernel.symbols().describe(at)));
}

/// "foo" for foo.cold, foo.part.0, foo.isra.0 and foo.llvm.123.
std::string_view base_name(std::string_view name) {
  return name.substr(0, name.find('.'));
}

/// A CPU that calls one of these has come to its end, or dies of the ud2 after it when it has no
/// interrupt table; and what relocate_kernel leads to is another kernel. UBSAN's handlers say that
/// the kernel has gone wrong there.
bool never_comes_back(std::string_view name) {
  constexpr std::string_view kEnds[] = {"panic", "vpanic", "__stack_chk_fail", "__warn_printk",
                                        "relocate_kernel"};
  return std::ranges::find(kEnds, base_name(name)) != std::ranges::end(kEnds) ||
         name.starts_with("__ubsan_handle_");
}

/// A kernel that preempts itself calls one of these when it gives up a lock: they return at once
/// while interrupts are off, as they are wherever no interrupt table is there to take them.
bool returns_at_once(std::string_view name) {
  return name == "preempt_schedule" || name == "preempt_schedule_notrace";
}

/// __x86_indirect_thunk_rax, __x86_indirect_thunk_array... which stand for a jump through it.
bool is_indirect_thunk(std::string_view name) {
  return name.starts_with("__x86_indirect_") && name.find("thunk") != std::string_view::npos;
}

}  // namespace

bool loads_serving_table(std::string_view function) {
  // load_current_idt since 5.8; before, it is part of those that call it. The last two: what a
  // CPU had saved when it went to sleep.
  constexpr std::string_view kLoaders[] = {"load_current_idt", "cpu_init_exception_handling",
                                           "cpu_init", "restore_processor_state",
                                           "__restore_processor_state"};
  return std::ranges::find(kLoaders, base_name(function)) != std::ranges::end(kLoaders);
}

const Symbol* CodeWalk::function_at(GuestVirt at) const {
  const Symbol* symbol = kernel_.symbols().at(at);
  return symbol != nullptr && symbol->is_text() && symbol->module == 0 ? symbol : nullptr;
}

bool CodeWalk::has_name(GuestVirt at, bool (*matches)(std::string_view name)) const {
  const auto names = kernel_.symbols().all_at(at);
  return std::any_of(names.begin(), names.end(),
                     [matches](const Symbol& symbol) { return matches(symbol.name); });
}

std::optional<GuestVirt> CodeWalk::jump_label_target(GuestVirt at) const {
  for (const auto& site : Kernel::sites_from(kernel_.patched_sites(), at)) {
    if (site.address != at) break;
    if (site.target != GuestVirt()) return site.target;
  }
  return std::nullopt;
}

Result<void> CodeWalk::check_indirect(Step step) const {
  if (step.indirect != Indirect::Fails) return {};
  return cannot_follow(step.at, kernel_, "an indirect branch");
}

Result<void> CodeWalk::follow_call(const disasm::Instruction& in, Step step, Path& path) {
  const Step next{step.at.wrapping_add(in.length), step.trusted, step.indirect};
  const Symbol* caller = function_at(step.at);
  const auto ftrace = ftrace_site(text_, *caller, &kernel_.symbols());
  if (ftrace && ftrace->begin == step.at) {
    path.open.push_back(next);  // the guest traces this function itself
    return {};
  }
  if (has_name(in.target, never_comes_back)) return {};
  if (has_name(in.target, is_indirect_thunk)) return check_indirect(step);
  if (has_name(in.target, returns_at_once)) {
    functions_.insert(in.target);
    path.open.push_back(next);
    return {};
  }
  const auto outcome =
      TRY(walk({in.target, has_name(caller->address, loads_serving_table), step.indirect}));
  if (outcome == Outcome::Returns) path.open.push_back(next);
  return {};
}

Result<void> CodeWalk::follow_jump(GuestVirt target, Step step, Path& path) {
  if (has_name(target, is_return_thunk)) {
    path.outcome = Outcome::Returns;
    return {};
  }
  if (has_name(target, never_comes_back)) return {};
  if (has_name(target, is_indirect_thunk)) return check_indirect(step);
  if (has_name(target, returns_at_once)) {
    functions_.insert(target);
    path.outcome = Outcome::Returns;
    return {};
  }
  const Symbol* from = function_at(step.at);
  const Symbol* to = function_at(target);
  const bool stays = to != nullptr && from->address == to->address;
  path.open.push_back(
      {target, stays ? step.trusted : has_name(from->address, loads_serving_table), step.indirect});
  return {};
}

Result<void> CodeWalk::step(Step step, Path& path) {
  const Symbol* function = function_at(step.at);
  if (function == nullptr) return cannot_follow(step.at, kernel_, "code outside the kernel's text");
  if (++steps_ > kMaxSteps)
    return cannot_follow(step.at, kernel_, "more code than can be followed");
  std::array<std::byte, arch::kLongestInstruction> bytes{};
  const std::size_t size = read_available(text_, step.at, bytes);
  const auto in = disasm::decode(std::span(bytes).first(size), step.at);
  if (!in) return cannot_follow(step.at, kernel_, "code that does not decode");
  if (bytes[0] == arch::kBreakpoint && step.indirect == Indirect::Fails) {
    return cannot_follow(step.at, kernel_, "a breakpoint of the guest's own");
  }
  functions_.insert(function->address);
  if (in->loads_idt && (step.trusted || has_name(function->address, loads_serving_table))) {
    return {};
  }
  if (const auto other = jump_label_target(step.at)) {
    // A trap point of the guest's own, as a rule: while it is off, nobody is called by it.
    TRY(follow_jump(*other, {step.at, step.trusted, Indirect::EndsPath}, path));
  }

  const Step next{step.at.wrapping_add(in->length), step.trusted, step.indirect};
  switch (in->flow) {
    case Flow::Call: return follow_call(*in, step, path);
    case Flow::IndirectCall: return check_indirect(step);
    case Flow::Jump: return follow_jump(in->target, step, path);
    case Flow::ConditionalJump: TRY(follow_jump(in->target, step, path)); break;
    case Flow::IndirectJump:
    case Flow::TableJump:
      TRY(check_indirect(step));
      if (step.indirect == Indirect::PassesOn) break;
      return {};
    case Flow::Return: path.outcome = Outcome::Returns; return {};
    case Flow::Stop:
    case Flow::Other: return {};  // ud2, hlt; lret and iret leave the start-up code
    case Flow::Next: break;
  }
  path.open.push_back(next);
  return {};
}

Result<CodeWalk::Outcome> CodeWalk::walk(Step start) {
  // A function that calls itself is taken to return while it is under way.
  const auto [known, fresh] = known_.try_emplace(start, Outcome::Returns);
  if (!fresh) return known->second;
  if (++depth_ > kMaxDepth) return cannot_follow(start.at, kernel_, "calls too deep to follow");
  Path path;
  path.open.push_back(start);
  while (!path.open.empty()) {
    const Step next = path.open.back();
    path.open.pop_back();
    if (path.seen.insert(next).second) TRY(step(next, path));
  }
  --depth_;
  return known_[start] = path.outcome;
}

Result<CodeWalk::Outcome> CodeWalk::from(GuestVirt start, Indirect indirect) {
  return walk({start, false, indirect});
}

}  // namespace ringside::providers
