#include "dif/d/testing/c_compiler.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace ringside::d {

std::vector<std::int64_t> run_c(const std::string& source, const std::string& flags) {
  char folder[] = "/tmp/ringside-c-XXXXXX";
  if (mkdtemp(folder) == nullptr) return {};
  const std::string base = folder;
  std::ofstream(base + "/x.c") << source;
  const std::string command =
      "cc -w -O0 -fwrapv " + flags + " -o " + base + "/x " + base + "/x.c && " + base + "/x";
  std::vector<std::int64_t> result;
  if (FILE* out = popen(command.c_str(), "r")) {
    long long value = 0;
    while (fscanf(out, "%lld", &value) == 1) result.push_back(value);
    pclose(out);
  }
  for (const char* name : {"/x", "/x.c"}) std::remove((base + name).c_str());
  std::remove(folder);
  return result;
}

std::size_t setting(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoul(text, nullptr, 10) : otherwise;
}

}  // namespace ringside::d
