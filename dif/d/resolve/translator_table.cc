#include "dif/d/resolve/translator_table.h"

#include <fmt/format.h>

namespace ringside::d {

Checked<void> TranslatorTable::check(const Translator& translator, const Location& at) const {
  if (!types_.is_struct(translator.output)) {
    return complain("D_XLATE_SOU", at,
                    fmt::format("translator output type must be a struct or union: {}",
                                types_.name(translator.output)));
  }
  if (types_.kind(translator.output) == TypeKind::Forward) {
    return complain(
        "D_XLATE_SOU", at,
        fmt::format("translator output type is not defined: {}", types_.name(translator.output)));
  }
  for (const Translator& known : translators_) {
    if (!types_.same(known.output, translator.output) ||
        !types_.same(known.input, translator.input)) {
      continue;
    }
    return complain("D_XLATE_REDECL", at,
                    fmt::format("translator from {} to {} has already been declared",
                                types_.name(translator.input), types_.name(translator.output)));
  }
  return {};
}

const Translator* TranslatorTable::find(TypeId output, TypeId input) const {
  const TypeId decayed = types_.decay(input);
  for (const Translator& translator : translators_) {
    if (!types_.same(translator.output, output)) continue;
    if (types_.same(translator.input, input) || types_.same(translator.input, decayed)) {
      return &translator;
    }
  }
  for (const Translator& translator : translators_) {
    if (!types_.same(translator.output, output)) continue;
    if (types_.is_integer(translator.input) && types_.is_integer(input)) return &translator;
    const bool pointers = types_.is_pointer(translator.input) && types_.is_pointer(decayed);
    if (pointers && types_.is_void(types_.referent(decayed))) return &translator;
  }
  return nullptr;
}

}  // namespace ringside::d
