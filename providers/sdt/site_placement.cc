#include "providers/sdt/site_placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "vmm/arch/arch.h"

namespace ringside::providers {
namespace {

using disasm::Flow;
using Index = FunctionFlow::Index;

constexpr std::size_t kMostEdges = 16;

/// Functions that a call of does not come back from, so that what lies after it is other code.
bool never_comes_back(std::string_view name) {
  constexpr std::array<std::string_view, 8> kEnds = {
      "panic",          "__stack_chk_fail", "fortify_panic",  "__fortify_panic",
      "usercopy_abort", "do_exit",          "make_task_dead", "__module_put_and_kthread_exit"};
  return std::ranges::find(kEnds, name) != kEnds.end() || name.starts_with("__ubsan_handle_");
}

/// The ways of one site.
class Site {
 public:
  Site(const Slice::Source& source, Index site, const Slice& slice)
      : source_(source), flow_(source.flow), site_(site), slice_(slice), node_(source.flow[site]) {}

  Result<std::vector<SitePlacement>> placements() {
    if (node_.next == FunctionFlow::kNone) return refuse("nothing follows it");
    if (!slice_.has_own_label()) {
      if (is_target_shared()) return refuse("other code comes to the code after it, too");
      target_ = flow_[node_.jump].at;
    }
    if (is_inner()) return std::vector{target_only()};
    std::vector<SitePlacement> out;
    if (!flow_.is_root(node_.next)) {
      const auto edges = foreign_jumps();
      if (edges.empty()) out.push_back(after(SitePlacement::Where::After, {}));
      if (auto before = this->before()) out.push_back(*before);
      const bool has_label =
          std::ranges::any_of(edges, [this](Index edge) { return is_label(edge); });
      if (!edges.empty() && edges.size() <= kMostEdges && !has_label) {
        out.push_back(after(SitePlacement::Where::Edges, edges));
      }
    } else if (auto before = this->before()) {
      out.push_back(*before);
    }
    if (out.empty()) return refuse("other code comes to the instruction after it, too");
    return out;
  }

 private:
  tl::unexpected<Error> refuse(std::string why) const {
    return fail(ErrorCode::Unsupported, std::move(why));
  }
  bool is_label(Index index) const { return flow_[index].key != GuestVirt(); }
  SitePlacement after(SitePlacement::Where where, const std::vector<Index>& edges) const {
    SitePlacement out{
        .where = where, .at = flow_[node_.next].at, .target = target_, .comes_back = comes_back()};
    for (const Index edge : edges) {
      out.edges.push_back({flow_[edge].at, flow_[edge].in.condition});
    }
    return out;
  }
  SitePlacement target_only() const {
    return {.where = SitePlacement::Where::TargetOnly, .at = node_.at, .target = target_};
  }

  /// In the block of another label of the same tracepoint, so that it runs only when that is on.
  bool is_inner() const {
    if (source_.others[site_]) return false;
    return flow_.reachable()[site_];
  }
  /// Whether a call lies there that does not come back.
  bool ends_here(const FunctionFlow::Node& node) const {
    if (node.in.flow != Flow::Call) return false;
    const auto names = source_.kernel.symbols().all_at(node.in.target);
    return std::ranges::any_of(names, [](const auto& one) { return never_comes_back(one.name); });
  }
  bool is_target_shared() const {
    if (flow_.is_root(node_.jump)) return true;
    for (Index from = 0; from < flow_.nodes().size(); ++from) {
      const auto& node = flow_[from];
      if (!source_.others[from] || !flow_.leads_to(from, node_.jump)) continue;
      if (node.key == source_.tracepoint.key && node.next != node_.jump) continue;
      if (node.jump != node_.jump && (ends_here(node) || node.in.flow == Flow::Stop)) continue;
      return true;
    }
    return false;
  }
  bool comes_back() const {
    std::vector<bool> seen(flow_.nodes().size());
    std::vector<Index> open{node_.jump};
    while (!open.empty()) {
      const Index here = open.back();
      open.pop_back();
      if (here == node_.next) return true;
      if (here == FunctionFlow::kNone || seen[here] || source_.others[here]) continue;
      seen[here] = true;
      open.push_back(flow_[here].next);
      open.push_back(flow_[here].jump);
    }
    return false;
  }
  /// Other instructions that lead to the one after the site while the tracepoint is off. Where the
  /// site itself cannot be reached, the function has ways that are not seen (jumps that the kernel
  /// makes of others when it boots), so each one counts.
  std::vector<Index> foreign_jumps() const {
    const bool is_seen = source_.others[site_];
    std::vector<Index> out;
    for (Index from = 0; from < flow_.nodes().size(); ++from) {
      if (from == site_ || !flow_.leads_to(from, node_.next)) continue;
      const auto& node = flow_[from];
      const bool runs = is_seen ? source_.others[from] : !slice_.has(node.at);
      const bool is_own = node.key == source_.tracepoint.key && node.next != node_.next;
      if (runs && !is_own) out.push_back(from);
    }
    return out;
  }
  /// For a site that every vCPU comes to by the instruction before it.
  std::optional<SitePlacement> before() const {
    if (site_ == 0 || flow_.is_root(site_)) return std::nullopt;
    const auto& last = flow_[site_ - 1];
    const bool falls = last.next == site_ && last.in.flow == Flow::Next;
    if (!falls || last.key != GuestVirt() || last.faults) return std::nullopt;
    for (Index from = 0; from < flow_.nodes().size(); ++from) {
      if (from != site_ - 1 && flow_.leads_to(from, site_)) return std::nullopt;
    }
    std::array<std::byte, arch::kLongestInstruction> bytes;
    const auto code = std::span(bytes).first(last.in.length);
    if (!source_.text.read(last.at, code)) return std::nullopt;
    const auto in = disasm::decode_evaluable(code, last.at);
    if (!in) return std::nullopt;
    return SitePlacement{
        .where = SitePlacement::Where::Before, .at = last.at, .target = target_, .before = *in};
  }

  const Slice::Source& source_;
  const FunctionFlow& flow_;
  const Index site_;
  const Slice& slice_;
  const FunctionFlow::Node& node_;
  std::optional<GuestVirt> target_;
};

}  // namespace

std::string_view name_of(SitePlacement::Where where) {
  switch (where) {
    case SitePlacement::Where::After: return "after";
    case SitePlacement::Where::Before: return "before";
    case SitePlacement::Where::Edges: return "after, and at other jumps to there";
    case SitePlacement::Where::TargetOnly: return "at its target";
  }
  return "?";
}

Result<std::vector<SitePlacement>> placements_for(const Slice::Source& source, Index site,
                                                  const Slice& slice) {
  return Site(source, site, slice).placements();
}

}  // namespace ringside::providers
