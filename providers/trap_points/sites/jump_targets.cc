// In this file, top to bottom: the parts of a function and their jumps, .cold parts by name.
#include "providers/trap_points/sites/jump_targets.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "disasm/decoder.h"
#include "providers/trap_points/sites/function_sites.h"
#include "providers/trap_points/sites/text_sweep.h"
#include "vmm/arch/arch.h"

namespace ringside::providers {
namespace {

using disasm::Flow;
using guest_linux::Kernel;
using guest_linux::Symbol;
using guest_linux::SymbolTable;

/// Functions of old kernels have one for each instruction that may fault.
constexpr std::size_t kMostParts = 256;
/// Of all parts together, as the next one. No function of Linux has as much.
constexpr std::uint64_t kMostBytes = 256 << 10;
constexpr std::size_t kMostTargets = 1 << 16;
/// Of the code after a fault, where it lies apart: up to eight in 5.10.
constexpr std::size_t kMostInstructions = 16;

bool is_cold_part(const SymbolTable& symbols, const Symbol& part) {
  return std::ranges::any_of(symbols.all_at(part.address), [](const Symbol& symbol) {
    return !owner_of_cold_part(symbol.name).empty();
  });
}

/// Sweeps the parts of one function, and finds further ones on the way. What returns bool says
/// whether all is known so far.
class PartsSweep {
 public:
  PartsSweep(const GuestReader& text, const Kernel& kernel) : text_(text), kernel_(kernel) {}

  /// A part that a symbol covers.
  bool add(const Symbol& part) {
    const auto is_it = [&part](const Part& other) {
      return other.symbol != nullptr && other.start == part.address;
    };
    if (std::ranges::any_of(parts_, is_it)) return true;
    const bool fits = part.size != 0 && part.size <= kMostBytes - bytes_;
    if (!part.is_text() || !fits || parts_.size() == kMostParts) return false;
    parts_.push_back({part.address, part.size, &part});
    bytes_ += part.size;
    return true;
  }

  bool run() {
    for (std::size_t n = 0; n < parts_.size(); ++n) {
      if (!(parts_[n].symbol != nullptr ? sweep(parts_[n]) : sweep_apart(n))) return false;
      if (!follow_sites(parts_[n])) return false;
    }
    return true;
  }
  /// After run().
  std::vector<GuestVirt> take_targets() { return std::move(targets_); }

 private:
  struct Part {
    GuestVirt start;
    std::uint64_t size = 0;
    const Symbol* symbol = nullptr;  // none: code after a fault that lies apart
  };

  bool sweep(Part part) {
    buffer_.resize(part.size);
    if (!text_.read(part.start, buffer_)) return false;
    // The guest may be rewriting its ftrace site, and no jump of its own leaves from it.
    const auto ftrace = ftrace_site(text_, *part.symbol, &kernel_.symbols());
    const GuestVirt begin = ftrace ? ftrace->end : part.start;
    const std::uint64_t skipped = std::min(begin.offset_from(part.start), part.size);
    const auto text = std::span<const std::byte>(buffer_).subspan(skipped);
    for (TextSweep steps(text, begin, TextSweep::Reach::ToTheEnd); !steps.is_done();) {
      const auto in = steps.next();
      if (!in || !note_jump(*in)) return false;
    }
    return true;
  }

  /// From where a fault goes on to the jump back (.fixup, before 5.17). Other functions' such code
  /// lies beside it, and no symbol tells them apart.
  bool sweep_apart(std::size_t index) {
    const GuestVirt start = parts_[index].start;
    std::array<std::byte, kMostInstructions * arch::kLongestInstruction> bytes;
    const auto known = std::span<const std::byte>(bytes).first(read_available(text_, start, bytes));
    TextSweep steps(known, start, TextSweep::Reach::NotToTheEnd);
    for (std::size_t n = 0; n < kMostInstructions && !steps.is_done(); ++n) {
      const auto in = steps.next();
      if (!in || !note_jump(*in)) return false;
      if (in->flow == Flow::Jump || in->flow == Flow::Return) {
        parts_[index].size = steps.here().offset_from(start);
        return true;
      }
      if (in->flow == Flow::Stop || in->flow == Flow::Other) return false;
    }
    return false;
  }

  bool note_jump(const disasm::Instruction& in) {
    switch (in.flow) {
      case Flow::Jump:
      case Flow::ConditionalJump: return follow(in.target, By::Jump);
      case Flow::TableJump:
      case Flow::IndirectJump: return false;
      default: return true;
    }
  }

  /// Where the kernel's tables lead to.
  bool follow_sites(Part part) {
    for (const auto& site : Kernel::sites_from(kernel_.patched_sites(), part.start)) {
      if (!site.address.is_in(part.start, part.size)) break;
      if (site.target != GuestVirt() && !follow(site.target, By::Label)) return false;
      if (site.fixup != GuestVirt() && !follow(site.fixup, By::Fault)) return false;
    }
    return true;
  }

  enum class By : std::uint8_t { Jump, Label, Fault };
  bool follow(GuestVirt target, By by) {
    if (targets_.size() == kMostTargets) return false;
    targets_.push_back(target);
    if (is_inside(target)) return true;
    const Symbol* const there = kernel_.symbols().at(target);
    if (there != nullptr && is_cold_part(kernel_.symbols(), *there)) return add(*there);
    switch (by) {
      case By::Jump: return !leads_to_thunk(target);
      case By::Label: return there != nullptr && add(*there);
      case By::Fault: break;
    }
    if (parts_.size() == kMostParts) return false;
    parts_.push_back({target});
    return true;
  }

  /// __x86_indirect_thunk_REG and the like stand for a jump by that register.
  bool leads_to_thunk(GuestVirt target) const {
    return std::ranges::any_of(kernel_.symbols().all_at(target), [](const Symbol& symbol) {
      return symbol.name.starts_with("__x86_indirect_");
    });
  }

  bool is_inside(GuestVirt at) const {
    return std::ranges::any_of(parts_, [at](const Part& part) {
      return at == part.start || at.is_in(part.start, part.size);
    });
  }

  const GuestReader& text_;
  const Kernel& kernel_;
  std::vector<Part> parts_;
  std::uint64_t bytes_ = 0;  // of those with symbols
  std::vector<std::byte> buffer_;
  std::vector<GuestVirt> targets_;
};

}  // namespace

std::optional<std::vector<GuestVirt>> JumpTargets::of(const Symbol& function) {
  PartsSweep sweep(text_, kernel_);
  if (!sweep.add(function)) return std::nullopt;
  // Whatever leads there: several functions of one name each have one.
  for (const Symbol& alias : kernel_.symbols().all_at(function.address)) {
    auto part = std::ranges::lower_bound(cold_parts(), alias.name, {}, &ColdPart::owner);
    for (; part != cold_parts().end() && part->owner == alias.name; ++part) {
      if (part->symbol->module == function.module && !sweep.add(*part->symbol)) return std::nullopt;
    }
  }
  if (!sweep.run()) return std::nullopt;
  auto targets = sweep.take_targets();
  std::ranges::sort(targets);
  return targets;
}

const std::vector<JumpTargets::ColdPart>& JumpTargets::cold_parts() {
  if (cold_parts_) return *cold_parts_;
  cold_parts_.emplace();
  const auto take = [this](std::span<const Symbol> symbols) {
    for (const Symbol& symbol : symbols) {
      const auto owner = owner_of_cold_part(symbol.name);
      if (!owner.empty()) cold_parts_->push_back({owner, &symbol});
    }
  };
  const SymbolTable& symbols = kernel_.symbols();
  take(symbols.symbols());
  for (std::size_t n = 0; n < symbols.modules().size(); ++n) {
    take(symbols.late(static_cast<std::uint16_t>(n)));
  }
  std::ranges::sort(*cold_parts_, {}, &ColdPart::owner);
  return *cold_parts_;
}

}  // namespace ringside::providers
