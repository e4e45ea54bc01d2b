// The probes of each address of the guest's text, for one epoch of the dispatcher. A new table is
// made for each epoch. It never changes, except for its counts of hits.
// Used by the dispatcher alone. Fire context: find(), bindings(), waiting(), ends(), probe_of() and
// hit() yes; everything else no.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "providers/context/binding.h"
#include "providers/trap_points/address_index.h"

namespace ringside::providers {

class DispatchTable {
 public:
  /// A probe that fires at an address.
  struct EnabledBinding {
    GuestVirt at;
    Binding binding;
  };
  /// The difference between one table and the next: bindings go before others come.
  struct Change {
    std::vector<GuestVirt> lost{};        // all that fires at these addresses goes
    std::vector<dif::ProbeId> removed{};  // all bindings of these probes go
    std::vector<EnabledBinding>
        added{};  // at one address they fire in this order, after the others
  };
  /// Bindings of one address: those that fire are [first, first + count), and those that wait
  /// follow. On the path that all system calls share there is also a table by number, whose
  /// bindings fire last. If waiting bindings end here: which ones.
  struct AddressBindings {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::uint32_t waiting = 0;
    std::int32_t by_number = -1;
    std::int32_t ends = -1;
  };
  /// Probes that fire at a return of another function than theirs.
  struct Ends {
    Binding shared;                      // all are alike but for the probe; this is one of them
    std::vector<dif::ProbeId> probes{};  // sorted; one may be there several times
  };

  /// How often each place was hit since the table was made, in the order of places.
  struct Counts {
    std::uint64_t epoch = 0;  // which table's; no place's: that of none
    std::vector<std::uint64_t> hits{};
  };
  /// An address, how often traps came from it, and which probes fire there.
  struct Hits {
    GuestVirt at;
    std::uint64_t count = 0;
    std::vector<dif::ProbeId> probes{};
  };

  DispatchTable() = default;
  /// For this many CPUs.
  DispatchTable(const DispatchTable& before, const Change& change, unsigned cpus);

  /// Null where nothing fires.
  const AddressBindings* find(GuestVirt at) const {
    const auto index = index_.find(at);
    return index ? &places_[*index] : nullptr;
  }
  std::span<const Binding> bindings(const AddressBindings& place) const {
    return std::span(bindings_).subspan(place.first, place.count);
  }
  std::span<const Binding> waiting(const AddressBindings& place) const {
    return std::span(bindings_).subspan(place.first + place.count, place.waiting);
  }
  /// Null where nothing ends.
  const Ends* ends(const AddressBindings& place) const {
    return place.ends < 0 ? nullptr : &ends_[static_cast<std::size_t>(place.ends)];
  }
  /// All bindings of a place by number are alike but for probe and number; this is one of them.
  const Binding& shared(const AddressBindings& place) const { return numbers(place).shared; }
  /// The probe that fires for this system call there; empty when none does.
  std::optional<dif::ProbeId> probe_of(const AddressBindings& place, std::uint64_t number) const {
    if (number >= kSyscallNumbers) return std::nullopt;
    const dif::ProbeId probe = numbers(place).probes[number];
    return probe.value != 0 ? std::optional(probe) : std::nullopt;
  }
  /// Counts a trap; under the firing lock of this CPU.
  void hit(const AddressBindings& place, std::uint32_t cpu) const {
    std::atomic<std::uint64_t>& count = hits_[cpu * places_.size() + index_of(place)];
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  Counts counts() const;
  /// The places that were hit since `before`; those of another table: since this one was made.
  std::vector<Hits> hits_since(const Counts& before) const;
  /// The address of each binding of one of these probes, in no order.
  std::vector<GuestVirt> places_of(std::span<const dif::ProbeId> probes) const;

 private:
  struct Numbers {
    Binding shared;
    std::array<dif::ProbeId, kSyscallNumbers> probes = {};  // id 0: none
  };
  const Numbers& numbers(const AddressBindings& place) const {
    return numbers_[static_cast<std::size_t>(place.by_number)];
  }
  std::size_t index_of(const AddressBindings& place) const {
    return static_cast<std::size_t>(&place - places_.data());
  }
  std::vector<dif::ProbeId> probes_at(const AddressBindings& place) const;
  std::vector<EnabledBinding> enabled() const;
  void put(const EnabledBinding& one);
  void put_end(AddressBindings& place, const Binding& binding);

  std::uint64_t epoch_ = 0;  // another for each table of a dispatcher
  AddressIndex index_;
  std::vector<GuestVirt> addresses_;  // of places_
  std::vector<AddressBindings> places_;
  std::vector<Binding> bindings_;
  std::vector<Numbers> numbers_;
  std::vector<Ends> ends_;
  mutable std::vector<std::atomic<std::uint64_t>> hits_;  // by CPU, then by place
};

}  // namespace ringside::providers
