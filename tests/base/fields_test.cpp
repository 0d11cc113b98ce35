#include "modules/base/fields.h"

#include <stdexcept>

#include "modules/base/error.h"
#include "tests/catch.h"

using namespace headlab;

namespace {

struct Plain : Described<Plain> {
  void describe(Fields&) override {}
};

struct Rotary : Described<Rotary> {
  double base = 10000;
  void describe(Fields& fields) override { fields.add("base", base, "").above(1); }
};

const Catalogue& positions() {
  static const Catalogue catalogue{
      "position", "", {{"none", "", "", [] { return std::make_shared<Plain>(); }}, {"rope", "", "", [] {
                                                                                      return std::make_shared<Rotary>();
                                                                                    }}}};
  return catalogue;
}

struct Twice : Described<Twice> {
  int64_t heads = 1;
  void describe(Fields& fields) override {
    fields.add("heads", heads, "");
    fields.add("heads", heads, "");
  }
};

}  // namespace

TEST_CASE("a catalogue finds its entries by name and lists them in order") {
  REQUIRE(positions().find("rope"));
  CHECK(positions().find("rope")->name == "rope");
  CHECK(positions().find("ropee") == nullptr);
  CHECK(positions().names() == std::vector<std::string>{"none", "rope"});
}

TEST_CASE("a choice has its entry's default options, and a copy has its own") {
  Choice choice(positions, "rope");
  choice.as<Rotary>().base = 500;
  Choice copy = choice;
  copy.as<Rotary>().base = 7;
  CHECK(choice.as<Rotary>().base == 500);
  CHECK(copy.type() == "rope");
  copy = choice;
  CHECK(copy.as<Rotary>().base == 500);
  Choice& self = copy;
  copy = self;
  CHECK(copy.as<Rotary>().base == 500);
  copy.choose("rope");
  CHECK(copy.as<Rotary>().base == 10000);
}

TEST_CASE("an unknown entry is refused with the nearest and what exists, and the choice stays as it was") {
  try {
    Choice(positions, "ropee");
    FAIL("accepted");
  } catch (const UsageError& error) {
    CHECK(std::string(error.what()) == "unknown position \"ropee\"; did you mean \"rope\"? (exists: none, rope)");
    CHECK(error.exit_code == 2);
  }
  Choice choice(positions, "rope");
  CHECK_THROWS_AS(choice.choose("alibi"), UsageError);
  CHECK(choice.type() == "rope");
  CHECK(choice.as<Rotary>().base == 10000);
}

TEST_CASE("two fields of one struct cannot have one name") {
  Twice twice;
  Fields fields;
  CHECK_THROWS_AS(twice.describe(fields), std::logic_error);
}
