#include "providers/functions/typed_plans.h"

#include <algorithm>

namespace ringside::providers {

TypedPlans::Widths TypedPlans::width_of(TypeId type) const {
  const Type& plain = types_[types_.resolve(type)];
  const bool is_number = plain.kind == TypeKind::Integer || plain.kind == TypeKind::Enum;
  const bool is_part = plain.size == 1 || plain.size == 2 || plain.size == 4;
  if (!is_number || !is_part) return 0;
  return plain.size | (plain.is_signed ? kSigned : 0);
}

void TypedPlans::know(dif::ProbeId probe, const ProbeArguments& arguments) {
  if (!arguments.known) return;
  Widths all = 0;
  const std::size_t count = std::min(arguments.types.size(), ArgumentPlan().arguments.size());
  for (std::size_t n = 0; n < count; ++n) all |= width_of(arguments.types[n]) << (n * kBits);
  if (all != 0) widths_[probe.value] = all;
}

const ArgumentPlan* TypedPlans::plan(dif::ProbeId probe, const ArgumentPlan& base) {
  const auto known = widths_.find(probe.value);
  if (known == widths_.end()) return &base;
  const auto [at, is_new] = plans_.try_emplace({&base, known->second}, base);
  ArgumentPlan& plan = at->second;
  if (!is_new) return &plan;
  Widths rest = known->second;
  for (ArgumentSource& source : plan.arguments) {
    const auto size = static_cast<std::uint8_t>(rest & kSize);
    if (size != 0) source = source.narrowed(size, (rest & kSigned) != 0);
    rest >>= kBits;
  }
  return &plan;
}

}  // namespace ringside::providers
