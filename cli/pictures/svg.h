// Pieces of SVG text. Names come from guests: append_escaped() makes any text harmless in elements
// and attributes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ringside::cli {

/// XML's escapes; characters that XML cannot hold become U+FFFD.
void append_escaped(std::string& out, std::string_view text);

/// "12.34 %" of a total that is not 0.
void append_share(std::string& out, std::uint64_t part, std::uint64_t total);
/// A length in pixels with two decimals at most: "12.5".
void append_pixels(std::string& out, double pixels);

/// How many characters the UTF-8 text has.
std::size_t characters_in(std::string_view text);
/// The first `most` characters; ends with ".." if there are more.
std::string shortened(std::string_view text, std::size_t most);

/// Opens the document, with its title, the style of its page and `style`. All text has one width
/// a character, kCharacterWidth pixels at kTextSize.
void begin_svg(std::string& out, double width, double height, std::string_view title,
               std::string_view style);

inline constexpr double kTextSize = 12;
inline constexpr double kCharacterWidth = 7.23;

}  // namespace ringside::cli
