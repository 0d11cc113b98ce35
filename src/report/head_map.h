#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace headlab {

/// A head's place, read from its name: "enc.self.0.3" is head 3 of layer 0 of the stack "enc.self".
struct HeadPlace {
  std::string stack;
  int64_t layer = 0, head = 0;
  auto operator<=>(const HeadPlace&) const = default;
};
std::optional<HeadPlace> place_of(const std::string& name);

/// Layers and heads of each stack: the size of its maps.
struct StackSizes {
  struct Size {
    int64_t layers = 0, heads = 0;
  };
  std::map<std::string, Size> sizes;
  void add(const HeadPlace& place);
  std::vector<std::string> stacks() const;  // encoder self-attention, decoder self-attention, cross-attention, others
};

/// The anchor of a head's row in the page's table of heads.
std::string head_anchor(const std::string& name);

/// A value for each head as grids of layer x head, one a stack: an HTML table whose cells have a colour, their value
/// and a link to the head's row. The scale is stated below.
struct HeadMap {
  std::string title, unit;               // unit: what the values are; "change of BLEU"
  std::map<std::string, double> values;  // by head
  bool diverging = false;                // a scale around 0; else from the lowest value to the highest
  bool high_is_bad = false;              // diverging: the high end is orange
  std::string reading;                   // what the colours mean, in words
  std::set<std::string> crossed, gone;   // crossed out: removed after this; gone: not there any more
  std::string crossed_by, gone_by;       // the stages that removed them

  std::string html(const StackSizes& sizes) const;
};

/// What is left of each stack: kept heads filled, removed ones crossed out.
std::string kept_map(const std::string& title, const std::set<std::string>& removed, const std::string& verb,
                     const StackSizes& sizes);

/// Colours that stay apart for the colour-blind; share from 0 to 1. "#08519c"
std::string sequential_colour(double share);  // light to dark blue
std::string diverging_colour(double share);   // dark orange (0), near white (0.5), dark blue (1)

}  // namespace headlab
