// The clauses of each probe. They are written while probes are enabled; firings of all vCPUs only
// read them. Fire context: find() and its result yes; everything else no.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "dif/engine/engine.h"
#include "dif/engine/record_buffer.h"
#include "dif/engine/record_layout.h"
#include "dif/evaluate/builtin_variables.h"
#include "dif/evaluate/variables.h"

namespace ringside::dif {

/// An enabled clause on one probe.
struct Ecb {
  EcbInfo info;
  const Clause* clause;
  RecordKind kind;
  std::uint64_t work = 0;       // what a run costs at most, in simple instructions
  std::uint64_t step_work = 0;  // of one of its steps, on average
  std::size_t loop_start = 0;   // of its loop: index into EnabledProbe::ecbs
  bool continues = false;       // as its clause
  bool commits_beside = false;  // has both commit() and a record of its own
  bool exits = false;           // has exit()
  bool orders = false;          // has an action that the consumer carries out
};

struct EnabledProbe {
  ProbeDescription name;
  ProbeIdentity identity;
  std::vector<const Ecb*> ecbs;
  bool loops = false;
  /// Its clauses, or ERROR's, come to what the program lock is for (shared_locks.h).
  bool program_first = false;
};

/// Bytes that the principal buffers of such a program have for orders, beside bufsize.
std::size_t room_for_orders(const Program& program, const EngineOptions& options);

class Enablings {
 public:
  /// All must outlive this.
  Enablings(const Program& program, const EngineOptions& options, SharedVariables& variables);
  Enablings(const Enablings&) = delete;
  Enablings& operator=(const Enablings&) = delete;

  EcbId enable(std::uint32_t clause, ProbeId probe, const ProbeDescription& name);
  /// The clause may be enabled while others fire: which lock they read a global under, which it
  /// may store, does not change any more then.
  void expect(std::uint32_t clause) { note_stores(clause); }
  void set_error_probe(ProbeId probe);
  void let_error_fire(bool fires) { error_fires_.store(fires, std::memory_order_relaxed); }
  void set_end_probe(ProbeId probe) { end_probe_ = probe; }

  const Program& program() const { return program_; }
  const EngineOptions& options() const { return options_; }
  /// Null: nothing is enabled there.
  const EnabledProbe* find(ProbeId id) const {
    const std::size_t page = id.value / kIdsOfPage;
    if (page >= probes_by_id_.size() || probes_by_id_[page] == nullptr) return nullptr;
    return (*probes_by_id_[page])[id.value % kIdsOfPage];
  }
  /// By its name; null: nothing is enabled there.
  const EnabledProbe* find(const ProbeDescription& name) const {
    const auto found = std::ranges::find(probes_, name, &EnabledProbe::name);
    return found != probes_.end() ? &*found : nullptr;
  }
  /// Null: faults fire nothing.
  const EnabledProbe* error_probe() const {
    return error_probe_ && error_fires_.load(std::memory_order_relaxed) ? find(*error_probe_)
                                                                        : nullptr;
  }
  bool is_end(ProbeId id) const { return end_probe_ == id; }
  const EcbInfo& info(EcbId id) const;
  const RecordShapes& shapes() const { return shapes_; }

  /// The room that a vCPU's firings need: clauses of one probe, bytes of a record that is made
  /// beside its buffer, and the Names arena.
  std::size_t most_clauses() const { return most_clauses_; }
  std::size_t largest_beside() const { return largest_beside_; }
  std::span<std::byte> names() const { return names_; }

  /// Bytes of a buffer that END's records need.
  std::size_t end_reserve() const;
  /// With Fill: whether an empty principal buffer has room for each record, and for all of END's.
  bool records_fit() const;

 private:
  template <class Bytes>
  std::size_t sum_over_end(Bytes bytes) const;
  EnabledProbe& probe(ProbeId id, const ProbeDescription& name);
  std::uint32_t add_name(const std::string& text);
  void note_stores(std::uint32_t clause);
  bool comes_to_program(const Clause& clause) const;
  void find_program_first();

  const Program& program_;
  const EngineOptions options_;
  SharedVariables& variables_;
  RecordShapes shapes_;  // by EcbId
  // None of these ever moves.
  std::deque<Ecb> ecbs_;
  std::deque<EnabledProbe> probes_;
  /// Null: nothing is enabled there. Providers have ranges of ids that lie far apart.
  static constexpr std::size_t kIdsOfPage = 1024;
  using IdPage = std::array<EnabledProbe*, kIdsOfPage>;
  std::vector<std::unique_ptr<IdPage>> probes_by_id_;
  mutable std::vector<std::byte> names_;  // the Names arena, which nobody writes
  std::uint32_t machine_name_ = 0;        // vmname, there
  std::vector<bool> stores_noted_;        // by clause
  std::size_t most_clauses_ = 0, largest_beside_ = 0;
  bool error_comes_ = false;  // to what the program lock is for
  std::optional<ProbeId> error_probe_, end_probe_;
  std::atomic<bool> error_fires_ = true;  // changed while others fire
};

}  // namespace ringside::dif
