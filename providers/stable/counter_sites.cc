// In this file, top to bottom: an arrival, a counter by its name, finding what adds, standing
// there.
#include "providers/stable/counter_sites.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "providers/stable/first_found.h"
#include "providers/trap_points/sites/function_sites.h"
#include "providers/trap_points/sites/instruction_list.h"

namespace ringside::providers {
namespace {

constexpr std::uint64_t kWord = sizeof(std::uint64_t);

/// Kernels have some 3,000 such instructions for 8 bytes.
constexpr std::size_t kMostSites = 1 << 16;

constexpr std::byte kGs{0x65};  // the prefix

/// Where the operand is, from the per-CPU base on.
std::uint64_t percpu_offset(disasm::MemoryOperand operand, const Registers& registers) {
  operand.segment_base = nullptr;
  return disasm::effective_address(operand, registers);
}

/// Whether these may begin an addition to memory that GS leads to: cheap, and right to say so for
/// one in some hundred bytes.
bool may_begin(std::span<const std::byte> bytes) {
  constexpr std::byte kRexW{0x48};
  if (bytes.size() < 3 || bytes[0] != kGs || (bytes[1] & std::byte{0xf8}) != kRexW) return false;
  constexpr std::array kOpcodes = {std::byte{0x01}, std::byte{0x29}, std::byte{0x81},
                                   std::byte{0x83}, std::byte{0xff}};
  return std::ranges::find(kOpcodes, bytes[2]) != kOpcodes.end();
}

/// The enumerator's value, if it is there and no negative number.
std::optional<std::uint64_t> index_of(const TypeGraph& types, std::string_view name) {
  const auto found = types.find_enumerator(name);
  if (!found || found->second < 0) return std::nullopt;
  return static_cast<std::uint64_t>(found->second);
}

}  // namespace

// An arrival

bool CounterSites::Adds::fires(const ArgumentMoment& at, FilterValues& out) const {
  if (percpu_offset(*adds_.memory, at.registers) != counter_) return false;
  out.words[0] = adds_.added(at.registers);
  out.words[1] = at.percpu_base.wrapping_add(counter_).raw();
  return true;
}

// A counter by its name

/// The per-CPU array that the symbol's members lead to: net->mib is the same from boot on.
Result<std::uint64_t> CounterSites::array_by_pointer(const guest_linux::Symbol& symbol,
                                                     std::string_view members) const {
  const TypeGraph& types = kernel_.types();
  auto type = types.find(TypeKind::Struct, "net");
  std::uint64_t bits = 0;
  while (!members.empty() && type) {
    const std::string_view name = members.substr(0, members.find('.'));
    members.remove_prefix(std::min(name.size() + 1, members.size()));
    const auto member = types.find_member(*type, name);
    if (!member) {
      return fail(ErrorCode::Unsupported,
                  fmt::format("{} of this kernel has no member {}", types.to_string(*type), name));
    }
    bits += member->bit_offset;
    type = member->type;
  }
  if (!type) return fail(ErrorCode::Unsupported, "this kernel has no type struct net");
  const auto pointer = load<std::uint64_t>(text_, symbol.address.wrapping_add(bits / 8));
  if (pointer) return *pointer;
  return fail(ErrorCode::Unsupported, fmt::format("{} cannot be read", symbol.name));
}

Result<CounterSites::Counter> CounterSites::read_counter(std::string_view name) const {
  const std::size_t bracket = name.find('[');
  const std::string_view enumerators = name.substr(bracket + 1, name.size() - bracket - 2);
  const std::string_view path = name.substr(0, bracket);
  const std::string_view root = path.substr(0, path.find('.'));
  const auto* const symbol = kernel_.symbols().find(root, "vmlinux");
  const auto index = first_found(
      enumerators, [&](std::string_view one) { return index_of(kernel_.types(), one); });
  if (symbol == nullptr || !index) {
    return fail(ErrorCode::NotFound, fmt::format("this kernel has no counter {}",
                                                 symbol == nullptr ? root : enumerators));
  }
  Counter out{.at = 0, .array = symbol->address.raw(), .is_by_pointer = path.size() != root.size()};
  if (out.is_by_pointer) {
    out.array = TRY(array_by_pointer(*symbol, path.substr(root.size() + 1)));
  }
  out.at = out.array + *index * kWord;
  return out;
}

/// Types are gone once tracing runs, so what was read is kept.
Result<CounterSites::Counter> CounterSites::counter(std::string_view name) {
  if (const auto known = counters_.find(name); known != counters_.end()) return known->second;
  const Counter fresh = TRY(read_counter(name));
  return counters_.emplace(name, fresh).first->second;
}

Result<void> CounterSites::check(std::string_view counter_name) {
  TRY(counter(counter_name));
  return {};
}

// Finding what adds

void CounterSites::find_sites(const guest_linux::Module& module) {
  constexpr std::size_t kPiece = 1 << 16;
  std::vector<std::byte> piece(kPiece + arch::kLongestInstruction);
  for (std::uint64_t done = 0; done < module.text_size; done += kPiece) {
    const GuestVirt begin = module.text_base.wrapping_add(done);
    const std::size_t read = read_available(
        text_, begin, std::span(piece).first(std::min(piece.size(), module.text_size - done)));
    const std::byte* const first = piece.data();
    const std::byte* const last = first + std::min(read, kPiece);
    for (const auto* here = first; (here = std::find(here, last, kGs)) != last; ++here) {
      const auto n = static_cast<std::size_t>(here - first);
      const auto bytes = std::span<const std::byte>(piece).subspan(n, read - n);
      if (!may_begin(bytes) || sites_->size() == kMostSites) continue;
      const GuestVirt at = begin.wrapping_add(n);
      if (const auto in = disasm::decode_operation(bytes, at); in && in->adds_to_memory())
        sites_->push_back({at, *in, Boundary::Unknown});
    }
  }
}

std::vector<CounterSites::Site>& CounterSites::sites() {
  if (std::exchange(generation_, points_.generation()) != points_.generation()) sites_.reset();
  if (sites_) return *sites_;
  sites_.emplace();
  for (const guest_linux::Module& module : kernel_.symbols().modules()) find_sites(module);
  return *sites_;
}

// Standing there

/// By what is known before it runs.
bool CounterSites::may_add_to(const Site& site, const Counter& counter) {
  const disasm::MemoryOperand& memory = *site.adds.memory;
  const auto displacement = static_cast<std::uint64_t>(memory.displacement);
  if (counter.is_by_pointer) {
    const std::uint64_t index = counter.at - counter.array;
    if (memory.base == nullptr) return false;
    return memory.index == nullptr ? displacement == index : displacement <= index;
  }
  if (memory.base != nullptr) return false;
  if (memory.index == nullptr) return displacement == counter.at;
  return displacement >= counter.array && displacement <= counter.at;
}

CounterSites::Boundary CounterSites::boundary_at(GuestVirt at) const {
  const auto* const function = kernel_.symbols().at(at);
  if (function == nullptr || !function->is_text()) return Boundary::None;
  const auto begins = has_instruction(text_, kernel_.symbols(), *function, at);
  if (!begins) return Boundary::NotListed;
  return *begins ? Boundary::Instruction : Boundary::None;
}

Result<std::vector<BoundSite>> CounterSites::sites_of(std::string_view name) {
  const Counter wanted = TRY(counter(name));
  // It moves what a CPU has counted that is gone, which was counted before.
  const auto* const moves = kernel_.symbols().find("vm_events_fold_cpu", "vmlinux");
  std::vector<BoundSite> out;
  for (Site& site : sites()) {
    if (!may_add_to(site, wanted)) continue;
    if (site.boundary == Boundary::Unknown) site.boundary = boundary_at(site.at);
    const auto* const function = kernel_.symbols().at(site.at);
    // Functions without an ftrace site are the kernel's lowest ones, which have no struct net, and
    // neither have those that trace MSRs: on 7.2 a tracepoint counts its readers.
    const bool is_low = site.boundary == Boundary::NotListed ||
                        (function && function->name.starts_with("do_trace_"));
    if (site.boundary == Boundary::None || (is_low && wanted.is_by_pointer)) continue;
    if (moves != nullptr && function == moves) continue;
    BoundSite bound{TRY(points_.examine(site.at, SitePolicy::Normal)), {}};
    bound.binding.at_function_edge = false;  // stacks begin with the instruction's own frame
    bound.binding.filter = &arrivals_.emplace_back(site.adds, wanted.at);
    out.push_back(bound);
  }
  if (out.empty()) {
    return fail(ErrorCode::NotFound, fmt::format("nothing in this kernel adds to {}", name));
  }
  return out;
}

}  // namespace ringside::providers
