// The files of the page, which lie in page/ and are compiled in (embed.py).
#pragma once

#include <string_view>
#include <vector>

namespace ringside::cli {

struct PageFile {
  std::string_view path, type, text;  // the path is that of a request
};

const std::vector<PageFile>& page_files();

}  // namespace ringside::cli
