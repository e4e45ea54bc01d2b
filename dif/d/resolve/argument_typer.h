// args[]: gives the arguments of the clause's probes their types, and their translators if the
// provider has some.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dif/d/resolve/clause_probes.h"
#include "dif/d/resolve/environment.h"
#include "dif/d/resolve/translators.h"

namespace ringside::d {

class ArgumentTyper {
 public:
  ArgumentTyper(const ResolverTools& tools, Environment& environment, Rewriter& rewriter,
                Translators& translators)
      : arena_(tools.arena),
        types_(tools.types),
        identifiers_(tools.identifiers),
        declared_(tools.declared),
        stability_(tools.stability),
        walker_(tools.walker),
        rewriter_(rewriter),
        translators_(translators),
        probes_(environment, tools.types) {}

  /// Sets the probes that args[] is typed by, until the next call.
  void enter_clause(std::vector<dif::ProbeDescription> probes) { probes_.enter(std::move(probes)); }
  /// Whether the clause names args[], which differs between its descriptions.
  bool needs_each(const ClauseNode& clause, const std::vector<dif::ProbeDescription>& probes) const;
  /// The types that args[] were taken for since the last call.
  std::vector<dif::ArgumentType> take_types();

  /// Types args[n].
  Checked<void> index(Expr* e);

 private:
  Checked<void> translated(Expr* e, const ProbeSignature& known, std::uint64_t position);
  void use(const ProbeSignature& known, std::uint64_t position);

  AstArena& arena_;
  Types& types_;
  IdentifierTable& identifiers_;
  TypeResolver& declared_;
  StabilityNotes& stability_;
  ExpressionWalker& walker_;
  Rewriter& rewriter_;
  Translators& translators_;
  ClauseProbes probes_;
  std::map<std::uint32_t, std::string> used_;  // as type_text() spells them
};

}  // namespace ringside::d
