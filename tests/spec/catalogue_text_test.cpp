#include "src/spec/catalogue_text.h"

#include "modules/base/error.h"
#include "tests/catch.h"
#include "tests/spec/toy.h"

using namespace headlab;

namespace {

std::string list(const std::string& what, bool full = false) {
  return catalogue_text({&toy::positions(), &toy::stages()}, what, full);
}

}  // namespace

TEST_CASE("the list of slots says what each does and what it has") {
  CHECK(list("") ==
        "position   rotates queries and keys, or gives a bias   none, rope, table\n"
        "stage      what a run does                             train, prune, evaluate\n");
}

TEST_CASE("a slot lists its entries with their papers") {
  CHECK(list("position") ==
        "none    no positions\n"
        "rope    rotary positions   2104.09864\n"
        "table   a learned bias\n");
}

TEST_CASE("an entry in full has its options with types, ranges, units, defaults and meaning") {
  CHECK(list("position.rope", true) ==
        "rope   rotary positions   2104.09864\n"
        "\n"
        "  option     takes                       default   meaning\n"
        "  base       a number above 1 (tokens)   10000     the longest wavelength over 2 pi\n"
        "  fraction   a number in (0, 1]          1         how much of a head is rotated\n"
        "\n"
        "  combines with every entry of the other slots\n");
  CHECK_THAT(list("stage", true), ContainsSubstring("absent: a tenth of steps"));
  CHECK_THAT(list("", true), ContainsSubstring("an integer of at least 1   required   longest sequence"));
  CHECK_THAT(list("position.none", true), ContainsSubstring("no options"));
}

TEST_CASE("options within options have dotted names") {
  std::string text = options_text(toy::ToySpec());
  CHECK_THAT(text, ContainsSubstring("  model.attention.position   a position "));
  CHECK_THAT(text, ContainsSubstring("  expect[].that "));
}

TEST_CASE("a slot or entry that does not exist is refused with the nearest") {
  CHECK_THROWS_WITH(list("positions"),
                    "unknown slot \"positions\"; did you mean \"position\"? (exists: position, stage)");
  CHECK_THROWS_WITH(list("stage.trian"),
                    "unknown stage \"trian\"; did you mean \"train\"? (exists: train, prune, evaluate)");
}

TEST_CASE("an entry in full says what it can't stand beside, and what can't stand beside it") {
  Catalogue gates{"gate",
                  "",
                  {{"windows",
                    "a window",
                    "",
                    [] { return std::make_shared<toy::RopeOptions>(); },
                    {"in self-attentions alone"},
                    {{"mix.*", "it is a toy"}}}}};
  Catalogue mixes{"mix", "", {{"sum", "adds", "", [] { return std::make_shared<toy::RopeOptions>(); }, {}, {}}}};
  CHECK_THAT(catalogue_text({&gates, &mixes}, "gate.windows", true),
             ContainsSubstring("  combines with the entries of the other slots, but:\n    in self-attentions alone\n   "
                               " not beside mix.*: it is a toy\n"));
  CHECK_THAT(catalogue_text({&gates, &mixes}, "mix.sum", true),
             ContainsSubstring("    not beside gate.windows: it is a toy\n"));
}
