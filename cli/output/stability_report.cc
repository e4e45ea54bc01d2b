#include "cli/output/stability_report.h"

#include <fmt/format.h>

namespace ringside::cli {

std::string attribute_lines(std::string_view heading, const dif::Attributes& attributes) {
  return fmt::format(
      "\t{}\n\t\tIdentifier Names: {}\n\t\tData Semantics:   {}\n\t\tDependency Class: {}\n",
      heading, dif::text(attributes.name), dif::text(attributes.data),
      dif::text(attributes.dependency));
}

std::string stability_report(std::string_view label, const dif::Attributes& description,
                             const dif::Attributes& statements) {
  return fmt::format("\nStability attributes for {}:\n\n{}\n{}\n", label,
                     attribute_lines("Minimum Probe Description Attributes", description),
                     attribute_lines("Minimum Statement Attributes", statements));
}

}  // namespace ringside::cli
