// Writes a file of options from its template: make_pages TEMPLATE FILE. Runs when ringside is
// built.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "cli/options/option_pages.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ifstream source(argv[1]);
  const std::string page{std::istreambuf_iterator<char>(source), {}};
  const std::string text = ringside::cli::fill_page(page);
  std::ofstream file(argv[2]);
  file << text;
  if (source && !text.empty() && file.flush()) return 0;
  std::fprintf(stderr, "%s: it cannot be made from %s\n", argv[2], argv[1]);
  return 1;
}
