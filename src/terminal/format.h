#pragma once

#include <cstdint>
#include <string>

namespace headlab {

/// "12,000"; "-1,234"
std::string with_commas(int64_t number);

/// Three or so digits with a prefix: "812", "21.3k", "1.1 M", "2.3 G", "0.25"; a unit may follow. "nan", "inf".
std::string short_number(double number);

/// "0.4 s", "51 s", "2 min 51 s", "1 h 03 min", "2 d 4 h"
std::string duration(double seconds);

/// "0:48", "12:07", "1:02:03": for numbers that change while one looks.
std::string clock_text(double seconds);

/// "812 B", "190 MB", "3.6 MB": powers of 1000.
std::string byte_count(double bytes);

/// "77.6" for (77.59, 1): that many digits after the point; never "-0.0". "nan", "inf", "-inf".
std::string fixed(double number, int digits);

/// fixed, with its sign in front: "+0.4", "-31.2"; zero has none.
std::string fixed_signed(double number, int digits);

/// The columns that UTF-8 text takes on a terminal: combining marks take none, East Asian wide characters and emoji
/// two. Bytes that are not UTF-8 and control characters count as one.
int64_t text_width(const std::string& text);

/// The text, cut to at most `columns`, with "…" at its end where something was cut.
std::string shortened(const std::string& text, int64_t columns);

/// The text with spaces after it (or before it), `columns` wide; longer text stays as it is.
std::string padded(const std::string& text, int64_t columns);
std::string padded_left(const std::string& text, int64_t columns);

/// "  train      text": what a run prints, its labels in one column.
std::string labelled(const std::string& label, const std::string& text);

}  // namespace headlab
