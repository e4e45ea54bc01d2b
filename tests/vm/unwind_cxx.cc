// unwind: the same as unwind.c, of C++: `unwind TICKS`.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "unwind_look.h"

namespace {

int next = kFirst;
volatile bool quiet = false;
void mark_next() {
  if (!quiet) mark(next++);
}

struct Shape {
  virtual ~Shape() { mark_next(); }
  virtual int area(int depth) const = 0;
};
struct Square final : Shape {
  int area(int depth) const override {
    const std::string text(40, 'x');  // to be destroyed if something is thrown
    if (depth > 0) return area(depth - 1) + static_cast<int>(text.size());
    mark_next();
    throw std::runtime_error(text);
  }
};

void work() {
  std::vector<std::string> words;
  for (int n = 0; n < 200; ++n) words.push_back(std::to_string(n * 7919 % 200));
  std::sort(words.begin(), words.end(), [](const auto& a, const auto& b) {
    if (a == "77" && b == "78") mark_next();
    return a < b;
  });
  std::map<std::string, int> counts;
  for (const std::string& word : words) ++counts[word.substr(0, 1)];
  const std::function<int(int)> count = [&](int n) {
    if (n == 0) mark_next();
    return n == 0 ? 0 : 1 + count(n - 1);
  };
  count(5);
  const std::unique_ptr<Shape> shape = std::make_unique<Square>();
  try {
    shape->area(4);
  } catch (const std::runtime_error&) {
    mark_next();
  }
}

}  // namespace

int main(int argc, char** argv) {
  mark(1);  // backtrace() loads what it needs when it is first called
  work();
  std::thread(work).join();
  quiet = true;
  look_at_ticks(argc > 1 ? std::atoi(argv[1]) : 0, work);
  print_looks();
  return 0;
}
