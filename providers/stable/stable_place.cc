// In this file, top to bottom: parameters, making one, its values, arrivals at the end and at the
// beginning.
#include "providers/stable/stable_place.h"

#include <fmt/format.h>

#include "providers/clock/host_clock.h"
#include "providers/stable/first_found.h"

namespace ringside::providers {
namespace {

/// Whether both are pointers to structures of one name.
bool point_alike(const TypeGraph& types, TypeId a, TypeId b) {
  const Type &left = types[types.resolve(a)], &right = types[types.resolve(b)];
  if (left.kind != TypeKind::Pointer || right.kind != TypeKind::Pointer) return false;
  return types[types.resolve(left.target)].name == types[types.resolve(right.target)].name;
}

/// With the argument's number for kByType.
Result<std::string> written_value(const TypeGraph& types, const NativeValue& native,
                                  std::span<const Parameter> parameters) {
  if (native.value != kByType) return std::string(native.value);
  const auto type = find_written_type(types, native.type);
  for (std::size_t n = 0; type && n < parameters.size(); ++n) {
    if (point_alike(types, parameters[n].type, *type)) return fmt::format("arg{}", n);
  }
  return fail(
      ErrorCode::Unsupported,
      fmt::format("the static tracepoint of this kernel has no argument of type {}", native.type));
}

/// A pointer that is a parameter as it stands has to be what this kernel's function takes there.
Result<void> check_parameter(const guest_linux::Kernel& kernel, const guest_linux::Symbol& function,
                             const NativeValue& native, TypeId type) {
  const std::string_view value = native.value;
  const auto prototype = kernel.prototype(function);
  const TypeGraph& types = kernel.types();
  const bool is_parameter = value.size() == 4 && value.starts_with("arg");
  const bool is_known = prototype && types[*prototype].kind == TypeKind::Function;
  if (!is_parameter || !is_known || !native.type.ends_with(" *")) return {};
  const auto parameters = types.parameters(*prototype);
  const auto n = static_cast<std::size_t>(value[3] - '0');
  if (n < parameters.size() && point_alike(types, parameters[n].type, type)) return {};
  return fail(ErrorCode::Unsupported, fmt::format("{} of this kernel takes no {} as parameter {}",
                                                  function.name, native.type, n + 1));
}

/// A native whose value is one alone.
Result<PlaceCompiler::Native> define_one(PlaceCompiler& compiler, const NativeValue& native,
                                         const StableProbe& probe,
                                         const guest_linux::Kernel& kernel, KernelPlaces& places) {
  TRY(places.check_argument(probe, native));
  const std::string value = TRY(written_value(kernel.types(), native, places.parameters(probe)));
  auto made = TRY(compiler.define(native.name, native.type, value));
  const auto* const function = places.function(probe);
  if (function != nullptr) TRY(check_parameter(kernel, *function, native, made.type));
  return made;
}

/// By the first of its values that this kernel has; the error is the last one's.
Result<PlaceCompiler::Native> define(PlaceCompiler& compiler, const NativeValue& native,
                                     const StableProbe& probe, const guest_linux::Kernel& kernel,
                                     KernelPlaces& places) {
  Result<PlaceCompiler::Native> made;
  first_found(native.value, [&](std::string_view value) {
    NativeValue one = native;
    one.value = value;
    made = define_one(compiler, one, probe, kernel, places);
    return made.has_value();
  });
  return made;
}

PlaceCompiler::End end_of(PlaceKind kind) {
  switch (kind) {
    case PlaceKind::Return:
    case PlaceKind::OwnReturn: return PlaceCompiler::End::Return;
    case PlaceKind::Entry: return PlaceCompiler::End::Entry;
    default: return PlaceCompiler::End::TrapFilter;
  }
}

}  // namespace

StableProbe place_of_start(const StableProbe& probe) {
  const StartPlace& start = *probe.start;
  const bool is_call = start.of == StartPlace::Of::Call;
  return {.name = {},
          .kind = start.kind,
          .place = is_call ? probe.place : start.place,
          .natives = start.natives,
          .never_in = probe.never_in,
          .never_called_by = probe.never_called_by};
}

// Making one

Result<std::unique_ptr<StablePlace>> StablePlace::make(const StableProbe& probe,
                                                       const guest_linux::Kernel& kernel,
                                                       KernelPlaces& places) {
  TRY(places.check(probe));
  PlaceCompiler compiler(kernel, end_of(probe.kind));
  auto place = std::make_unique<StablePlace>(probe, kernel);
  for (const NativeValue& part : probe.parts) {
    TRY(define(compiler, part, probe, kernel, places));
  }
  for (const NativeValue& native : probe.natives) {
    auto made = TRY(define(compiler, native, probe, kernel, places));
    place->types_.push_back(made.type);
    place->natives_.push_back({std::move(made.value), native.shape});
  }
  place->condition_ = TRY(compiler.condition(probe.condition));
  for (unsigned n = 0; n < place->natives_.size(); ++n) {
    place->plan_.arguments[n] = ArgumentSource::computed(*place, n);
  }
  if (probe.start != nullptr) TRY(place->compile_start(places));
  return place;
}

Result<void> StablePlace::compile_start(KernelPlaces& places) {
  const StartPlace& start = *probe_.start;
  const StableProbe where = place_of_start(probe_);
  TRY(places.check(where));
  PlaceCompiler compiler(kernel_, end_of(start.kind));
  for (const NativeValue& native : start.natives) {
    auto made = TRY(define(compiler, native, where, kernel_, places));
    start_values_.push_back(std::move(made.value));
  }
  begins_ = TRY(compiler.condition(start.condition));
  spoilt_ = TRY(compiler.condition(start.spoilt_when));
  return {};
}

// Its values

Result<std::uint64_t, Fault> StablePlace::argument(unsigned n, const ArgumentMoment& at) const {
  const Native& native = natives_[n];
  const std::uint64_t value = TRY(native.value.value(at, kernel_));
  return native.shape != nullptr ? native.shape(value) : value;
}

// Arrivals

bool StablePlace::PlaceFilter::fires(const ArgumentMoment& at, FilterValues& out) const {
  if (site_ != nullptr && !site_->fires(at, out)) return false;
  ArgumentMoment then = at;
  then.filter_values = &out;
  return (place_.*fires_)(then, out);
}

const TrapFilter* StablePlace::at_end(const TrapFilter* site) {
  if (site == nullptr && probe_.condition.empty() && probe_.start == nullptr) return nullptr;
  return &arrivals_.emplace_back(*this, site, &StablePlace::ends);
}

const TrapFilter* StablePlace::at_start(const TrapFilter* site) {
  if (starts_ == nullptr) starts_ = std::make_unique<StartTable>();
  return &arrivals_.emplace_back(*this, site, &StablePlace::begins);
}

/// The key of what begins or ends there; empty where it cannot be told.
std::optional<std::uint64_t> StablePlace::key(std::uint64_t object,
                                              const ArgumentMoment& at) const {
  if (probe_.start->of == StartPlace::Of::Call) return at.registers.*arch::kStackPointer;
  // Pairs that have one key by chance are as rare as those of 64 random bits.
  constexpr std::uint64_t kSpread = 0xff51'afd7'ed55'8ccd;
  const auto task = kernel_.current_task(at.kernel, at.percpu_base);
  if (!task) return std::nullopt;
  return task->raw() ^ object * kSpread;
}

bool StablePlace::ends(const ArgumentMoment& at, FilterValues& out) const {
  if (probe_.start == nullptr) return condition_.holds(at, kernel_);
  const bool has_object = probe_.start->of == StartPlace::Of::TaskAndObject;
  const auto object =
      has_object ? natives_.front().value.value(at, kernel_) : Result<std::uint64_t, Fault>(0);
  const auto who = object ? key(*object, at) : std::nullopt;
  const auto start = who ? starts_->take(*who) : std::nullopt;
  if (!start || start->is_spoilt) return false;
  out.words[PlaceCompiler::kElapsed] = monotonic_ns() - start->time;
  for (std::size_t n = 0; n < Start::kWords; ++n) {
    out.words[PlaceCompiler::kFirstStart + n] = start->words[n];
  }
  return condition_.holds(at, kernel_);
}

/// Empty where it cannot be told.
std::optional<Start> StablePlace::start(const ArgumentMoment& at) const {
  Start start{.time = monotonic_ns(), .words = {}, .is_spoilt = false};
  start.is_spoilt = !probe_.start->spoilt_when.empty() && spoilt_.holds(at, kernel_);
  if (!start.is_spoilt && !begins_.holds(at, kernel_)) return std::nullopt;
  for (std::size_t n = 0; n < start_values_.size(); ++n) {
    const auto value = start_values_[n].value(at, kernel_);
    if (!value) return std::nullopt;
    start.words[n] = *value;
  }
  return start;
}

/// Never fires.
bool StablePlace::begins(const ArgumentMoment& at, FilterValues&) const {
  const auto found = start(at);
  const auto who = found ? key(found->words[0], at) : std::nullopt;
  if (!who) return false;
  if (probe_.start->of == StartPlace::Of::Call) {
    starts_->put(*who, *found);
  } else {
    starts_->put_first(*who, *found);
  }
  return false;
}

}  // namespace ringside::providers
