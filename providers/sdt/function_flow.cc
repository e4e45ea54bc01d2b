// In this file, top to bottom: parts of a function, where instructions go on, entries,
// reachability.
#include "providers/sdt/function_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "providers/trap_points/sites/function_sites.h"
#include "providers/trap_points/sites/text_sweep.h"
#include "vmm/arch/arch.h"

namespace ringside::providers {
namespace {

using disasm::Flow;
using guest_linux::Kernel;
using guest_linux::Symbol;

constexpr std::size_t kMostParts = 8;
/// In bytes; those of 6.1 and 6.12 that have tracepoints are below 16 KiB.
constexpr std::uint64_t kLargestPart = 128 << 10;

tl::unexpected<Error> cannot_tell(std::string_view function, std::string_view why) {
  return fail(ErrorCode::Unsupported, fmt::format("{} {}", function, why));
}

/// Where compilers were told to make no tables of jumps, an indirect jump leaves the function.
bool has_no_jump_tables(const Kernel& kernel) {
  return kernel.symbols().find("__x86_indirect_thunk_rax", "vmlinux") != nullptr;
}

bool goes_on(Flow flow) {
  switch (flow) {
    case Flow::Next:
    case Flow::Call:
    case Flow::IndirectCall:
    case Flow::ConditionalJump: return true;
    default: return false;
  }
}

/// The code that runs instead after a fault may lie apart (.fixup, before 5.16) and come back by a
/// jump.
std::optional<GuestVirt> way_back(const GuestReader& text, GuestVirt fixup) {
  constexpr unsigned kMostInstructions = 8;
  GuestVirt here = fixup;
  for (unsigned n = 0; n < kMostInstructions; ++n) {
    std::array<std::byte, arch::kLongestInstruction> bytes;
    const auto known = std::span<const std::byte>(bytes).first(read_available(text, here, bytes));
    const auto in = disasm::decode(known, here);
    if (!in) return std::nullopt;
    if (in->flow == Flow::Jump) return in->target;
    if (in->flow != Flow::Next) return std::nullopt;
    here = here.wrapping_add(in->length);
  }
  return std::nullopt;
}

}  // namespace

FunctionFlow::Index FunctionFlow::at(GuestVirt address) const {
  const auto found = std::ranges::lower_bound(nodes_, address, {}, &Node::at);
  if (found == nodes_.end() || found->at != address) return kNone;
  return static_cast<Index>(found - nodes_.begin());
}

bool FunctionFlow::covers(GuestVirt address) const {
  return std::ranges::any_of(
      parts_, [&](const Part& part) { return address.is_in(part.begin, part.size); });
}

/// Takes over what the kernel's tables say of the instruction. A label is a jump in one way only,
/// whatever its bytes are now. `sites` begins at or before it, and is moved there.
void FunctionFlow::take_sites(std::span<const Kernel::PatchedSite>& sites, Node& node) {
  while (!sites.empty() && sites.front().address < node.at) sites = sites.subspan(1);
  for (const auto& site : sites) {
    if (site.address != node.at) break;
    if (site.fixup != GuestVirt()) node.faults = true;
    if (site.target == GuestVirt()) continue;
    node.key = site.key;
    node.in.flow = Flow::ConditionalJump;
    node.in.target = site.target;
  }
}

Result<void> FunctionFlow::add_part(const GuestReader& text, const Kernel& kernel,
                                    const Symbol& part) {
  if (part.size == 0 || part.size > kLargestPart) {
    return cannot_tell(part.name, "has no known end");
  }
  if (covers(part.address)) return {};
  if (parts_.size() == kMostParts) return cannot_tell(part.name, "is one part of too many");
  std::vector<std::byte> bytes(part.size);
  if (!text.read(part.address, bytes)) return cannot_tell(part.name, "cannot be read");
  parts_.push_back({part.address, part.size});
  const auto ftrace = ftrace_site(text, part, &kernel.symbols());
  auto sites = Kernel::sites_from(kernel.patched_sites(), part.address);
  TextSweep sweep(bytes, part.address, TextSweep::Reach::ToTheEnd);
  while (!sweep.is_done()) {
    const GuestVirt here = sweep.here();
    const auto in = sweep.next();
    if (!in) return cannot_tell(part.name, "does not decode: " + in.error().message);
    Node node{here, *in};
    // The guest may trace this function itself just now.
    if (ftrace && here == ftrace->begin) node.in.flow = Flow::Next;
    take_sites(sites, node);
    nodes_.push_back(node);
  }
  return {};
}

/// By what leads there, a jump or a fault: several functions of one name each have one.
Result<void> FunctionFlow::add_cold_parts(const GuestReader& text, const Kernel& kernel) {
  const auto add = [&](GuestVirt target) -> Result<void> {
    if (covers(target)) return {};
    const Symbol* const there = kernel.symbols().at(target);
    if (there == nullptr || !there->is_text()) return {};
    return owner_of_cold_part(there->name).empty() ? Result<void>()
                                                   : add_part(text, kernel, *there);
  };
  std::size_t seen = 0;
  for (std::size_t n = 0; n < parts_.size(); ++n) {
    for (; seen < nodes_.size(); ++seen) {
      const disasm::Instruction in = nodes_[seen].in;
      if (in.flow == Flow::Jump || in.flow == Flow::ConditionalJump) TRY(add(in.target));
    }
    const Part part = parts_[n];
    for (const auto& site : Kernel::sites_from(kernel.patched_sites(), part.begin)) {
      if (!site.address.is_in(part.begin, part.size)) break;
      if (site.fixup != GuestVirt()) TRY(add(site.fixup));
    }
  }
  return {};
}

Result<void> FunctionFlow::connect(const Kernel& kernel) {
  const bool no_tables = has_no_jump_tables(kernel);
  for (Index index = 0; index < nodes_.size(); ++index) {
    Node& node = nodes_[index];
    const Flow flow = node.in.flow;
    if (flow == Flow::TableJump || (flow == Flow::IndirectJump && !no_tables)) {
      return cannot_tell(kernel.symbols().describe(node.at), "jumps by a table");
    }
    // A warning's ud2 is passed; an int3 and a hlt are not code that goes on.
    const bool is_warning = flow == Flow::Stop && node.in.length == 2;
    if (goes_on(flow) || is_warning) node.next = at(node.at.wrapping_add(node.in.length));
    if (flow == Flow::Jump || flow == Flow::ConditionalJump) node.jump = at(node.in.target);
  }
  return {};
}

void FunctionFlow::add_root(GuestVirt address) {
  if (const Index index = at(address); index != kNone) roots_.push_back(index);
}

void FunctionFlow::add_fixups(const GuestReader& text, const Kernel& kernel) {
  for (const Part& part : parts_) {
    for (const auto& site : Kernel::sites_from(kernel.patched_sites(), part.begin)) {
      if (!site.address.is_in(part.begin, part.size)) break;
      if (site.fixup == GuestVirt()) continue;
      if (covers(site.fixup)) {
        add_root(site.fixup);
      } else if (const auto back = way_back(text, site.fixup)) {
        add_root(*back);
      }
    }
  }
}

Result<FunctionFlow> FunctionFlow::read(const GuestReader& text, const Kernel& kernel,
                                        GuestVirt at) {
  const auto& symbols = kernel.symbols();
  const Symbol* function = symbols.at(at);
  if (function == nullptr || !function->is_text()) {
    return fail(ErrorCode::Unsupported, fmt::format("no function covers {:#x}", at.raw()));
  }
  FunctionFlow flow;
  const auto owner = owner_of_cold_part(function->name);
  if (!owner.empty()) {
    const auto& module = symbols.modules()[function->module].name;
    function = symbols.find(owner, module);
    if (function == nullptr) return cannot_tell(owner, "has no symbol");
  }
  TRY(flow.add_part(text, kernel, *function));
  TRY(flow.add_cold_parts(text, kernel));
  std::ranges::sort(flow.nodes_, {}, &Node::at);
  if (!flow.covers(at)) return cannot_tell(symbols.describe(at), "belongs to no known function");
  TRY(flow.connect(kernel));
  flow.add_root(function->address);
  flow.add_fixups(text, kernel);
  std::ranges::sort(flow.roots_);
  return flow;
}

bool FunctionFlow::is_root(Index index) const {
  return std::ranges::binary_search(roots_, index);
}

bool FunctionFlow::leads_to(Index from, Index to) const {
  const Node& node = nodes_[from];
  return to != kNone && (node.next == to || node.jump == to);
}

std::vector<bool> FunctionFlow::reach(std::optional<GuestVirt> off) const {
  std::vector<bool> seen(nodes_.size()), closed(nodes_.size());
  const auto is_off = [&](const Node& node) {
    return off && node.key == *off && node.key != GuestVirt();
  };
  for (const Node& node : nodes_) {
    if (is_off(node) && node.jump != kNone) closed[node.jump] = true;
  }
  std::vector<Index> open(roots_);
  const auto go = [&](Index to) {
    if (to != kNone && !seen[to] && !closed[to]) open.push_back(to);
  };
  while (!open.empty()) {
    const Index here = open.back();
    open.pop_back();
    if (seen[here]) continue;
    seen[here] = true;
    const Node& node = nodes_[here];
    go(node.next);
    if (!is_off(node)) go(node.jump);
  }
  return seen;
}

}  // namespace ringside::providers
