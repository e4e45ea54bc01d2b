// A probe that a D library defines on top of the kernel's functions, static tracepoints or
// counters, or of functions of processes (docs/providers-in-d.md). dif/d/probe_definitions.h reads
// definitions from the text of libraries; providers/stable makes probes of them. Expressions are
// still D text here: each kernel has its own types and addresses, so they are compiled for one
// kernel when a program asks for the probe. Plain data. Fire context: no.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ringside::dif {

/// Where a probe stands.
struct ProbePlace {
  enum class Kind : std::uint8_t {
    Entry,       // of a function
    Return,      // from it, all ways out
    OwnReturn,   // the same without the jumps into other functions, which return for it
    Tracepoint,  // a static tracepoint of the kernel
    Counter,     // where the kernel adds to a counter of its own (counter_sites.h)
    UserEntry,   // of a function of processes
    UserReturn,  // from it
    Nowhere,     // documented, and not there: `name` says why and what comes nearest
  };
  bool is_function() const {
    return kind == Kind::Entry || kind == Kind::Return || kind == Kind::OwnReturn;
  }
  bool is_of_processes() const { return kind == Kind::UserEntry || kind == Kind::UserReturn; }
  Kind kind = Kind::Entry;
  /// Of the function; of processes the name of a file, in which it may be a glob.
  std::string module = "vmlinux";
  /// Of the function, tracepoint or counter. Alternatives for kernels that differ have a bar
  /// between them: the first counts that this kernel has. A glob is each function that it matches.
  std::string name = {};
  /// For a return: an expression uses the returned value.
  bool needs_result = false;
  /// A function that some kernels have inlined into its callers. There the probe would miss it, so
  /// those kernels have no such probe. Empty: none.
  std::string unless_inlined = {};
  /// Where the function is no function of its own, the probes of its callers tell the same.
  bool or_in_callers = false;
  /// Prefixes of function names. Functions with such a name pass the tracepoint only for something
  /// else: no probe stands in them.
  std::vector<std::string> never_in = {};
  /// The same of functions that these call: some are compiled several times under one name.
  std::vector<std::string> never_called_by = {};
  bool operator==(const ProbePlace&) const = default;
};

/// An expression of a library.
struct DefinitionText {
  std::string text = {};  // D; ProbeDefinition::marker() stands for a value
  int line = 0;           // of the library
  bool operator==(const DefinitionText&) const = default;
};

/// For a probe that fires at the end of something: where that begins, and the words that are
/// remembered from there to the end. The probe fires only if the beginning was seen.
struct ProbeBeginning {
  struct Remembered {
    std::string name = {};
    DefinitionText value = {};
    bool adds = false;  // a further beginning before the end adds its bits
    bool operator==(const Remembered&) const = default;
  };
  ProbePlace place = {};
  DefinitionText condition = {};  // empty: always
  std::vector<Remembered> remembered = {};
  /// The object that both belong to, beside the task: at the beginning and at the end. Without
  /// it, the end is the return of the call whose entry is the beginning; or, if that is in a
  /// process and the end elsewhere, the last beginning of the task counts, until the probe fires.
  std::optional<DefinitionText> key = {}, key_at_end = {};
  bool operator==(const ProbeBeginning&) const = default;
};

struct ProbeDefinition {
  /// A value at the place. Later ones can use it.
  struct Value {
    std::string name = {};
    std::string type = {};                     // of an argument; empty: that of the expression
    std::vector<DefinitionText> choices = {};  // the first counts that this kernel has
    bool operator==(const Value&) const = default;
  };
  /// arg0, arg1... of the probe.
  struct Argument {
    std::string name = {};
    std::string type = {};  // "struct task_struct *": how programs see it without translation
    std::size_t value = 0;  // index into `values`
    bool operator==(const Argument&) const = default;
  };
  /// args[n]: the argument `native`, by number, translated to `type` by D's libraries.
  struct Translated {
    std::string type = {};
    unsigned native = 0;
    bool operator==(const Translated&) const = default;
  };
  /// Kernels that a definition is for. A real-time kernel (PREEMPT_RT) makes all locks that sleep
  /// of one other kind.
  enum class Kernels : std::uint8_t { Any, Usual, RealTime };

  std::string provider = {}, name = {};
  std::size_t library = 0;  // whose declarations the expressions use, from 0
  int line = 0;
  ProbePlace place = {};
  DefinitionText condition = {};   // empty: always
  std::vector<Value> values = {};  // in the order of the text
  std::vector<Argument> arguments = {};
  /// The function's own parameters are more arguments (cli/program/probe_families.h).
  bool passes_parameters = false;
  std::vector<Translated> translated = {};
  std::optional<ProbeBeginning> beginning = {};
  Kernels kernels = Kernels::Any;  // on others nobody hears of it

  /// Whether it stands in processes, or begins there.
  bool is_of_processes() const { return place.is_of_processes() || begins_in_processes(); }
  bool begins_in_processes() const { return beginning && beginning->place.is_of_processes(); }
  /// Whether the last beginning of the task counts: an end in a process is that of a call.
  bool counts_last_beginning() const {
    return begins_in_processes() && !beginning->key && !place.is_of_processes();
  }

  /// In the text of an expression, `values[n]`; no D program contains such a byte.
  static constexpr char kMarker = '\x01';
  static std::string marker(std::size_t n) { return {kMarker, static_cast<char>('0' + n)}; }
  bool operator==(const ProbeDefinition&) const = default;
};

/// The expressions that belong to one place of a definition, as D.
struct DefinitionPart {
  DefinitionText condition = {};            // empty: none
  std::vector<DefinitionText> values = {};  // integers and pointers
};

/// At the end, remembered word n is arg<first_remembered() + n>: behind what the place passes. A
/// return passes two, and so it has room for more.
constexpr unsigned first_remembered(ProbePlace::Kind end) {
  const bool is_own = end == ProbePlace::Kind::OwnReturn || end == ProbePlace::Kind::UserReturn;
  return is_own ? 2 : 7;
}
inline constexpr std::size_t kMostRemembered = 8;
constexpr std::size_t most_remembered(ProbePlace::Kind end) {
  return first_remembered(end) == 2 ? kMostRemembered : 3;
}

}  // namespace ringside::dif
