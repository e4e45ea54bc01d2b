// `#pragma D attributes` and `#pragma D binding`. The parser reads `option`, and compile.cc reads
// `depends_on`.
#pragma once

#include "dif/d/resolve/identifier_table.h"
#include "dif/d/resolve/provider_table.h"
#include "dif/d/resolve/type_resolver.h"

namespace ringside::d {

class PragmaReader {
 public:
  PragmaReader(IdentifierTable& identifiers, const TypeResolver& declared, ProviderTable& providers)
      : identifiers_(identifiers), declared_(declared), providers_(providers) {}

  Checked<void> read(const PragmaNode& node);

 private:
  Checked<void> read_binding(const PragmaNode& node);
  Checked<void> read_attributes(const PragmaNode& node);
  Checked<void> read_provider(const PragmaNode& node, const dif::Attributes& attributes);
  Checked<void> settle(const PragmaNode& node);

  IdentifierTable& identifiers_;
  const TypeResolver& declared_;
  ProviderTable& providers_;
};

}  // namespace ringside::d
