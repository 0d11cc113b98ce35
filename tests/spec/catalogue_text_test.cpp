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
        "  fraction   a number in (0, 1]          1         how much of a head is rotated\n");
  CHECK_THAT(list("stage", true), ContainsSubstring("absent: a tenth of steps"));
  CHECK_THAT(list("", true), ContainsSubstring("an integer of at least 1   required   longest sequence"));
  CHECK_THAT(list("position.none", true), ContainsSubstring("no options"));
}

TEST_CASE("options within options have dotted names") {
  std::string text = options_text(toy::ToySpec());
  CHECK_THAT(text, ContainsSubstring("  model.attention.position   a position: none, rope, table "));
  CHECK_THAT(text, ContainsSubstring("  expect[].that "));
}

TEST_CASE("a slot or entry that does not exist is refused with the nearest") {
  CHECK_THROWS_WITH(list("positions"),
                    "unknown slot \"positions\"; did you mean \"position\"? (exists: position, stage)");
  CHECK_THROWS_WITH(list("stage.trian"),
                    "unknown stage \"trian\"; did you mean \"train\"? (exists: train, prune, evaluate)");
}
