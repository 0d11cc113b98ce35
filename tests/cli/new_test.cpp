#include <filesystem>

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/support/places.h"
#include "tests/support/program.h"

using namespace headlab::test;
namespace fs = std::filesystem;

namespace {

/// The files of the checkout that `headlab new` reads and changes, in a folder of their own.
void copy_what_new_needs(const fs::path& to) {
  for (const std::string slot : {"gate", "mix", "position"}) {
    fs::create_directories(to / "modules/attention" / slot);
    fs::copy_file(in_source("modules/attention/" + slot + "/registry.cpp"),
                  to / "modules/attention" / slot / "registry.cpp");
  }
  fs::create_directories(to / "tests/modules");
  fs::create_directories(to / "experiments");
  fs::copy_file(in_source("tests/modules/conformance_test.cpp"), to / "tests/modules/conformance_test.cpp");
  fs::create_directories(to / "tools");
  fs::copy(in_source("tools/templates"), to / "tools/templates", fs::copy_options::recursive);
}

Finished new_in(const fs::path& folder, const std::string& arguments) {
  Running program({"/bin/sh", "-c", "cd '" + folder.string() + "' && '" + program_file() + "' new " + arguments});
  return program.wait();
}

}  // namespace

TEST_CASE(
    "a new head has its sources, its line in the registry, its row among the tests of all, its test and its experiment",
    "[cli]") {
  const Folder folder;
  copy_what_new_needs(folder.path());
  for (const std::string slot : {"gate", "mix", "position"}) {
    INFO(slot);
    const auto name = "wide_" + slot, type = std::string("Wide") + static_cast<char>(slot[0] - 32) + slot.substr(1);
    const auto made =
        new_in(folder.path() / "modules", "head " + name + " --slot " + slot);  // from anywhere in the checkout
    INFO(made.err);
    REQUIRE(made.code == 0);
    CHECK_THAT(made.out, ContainsSubstring("tools/test \"[" + name + "],[conformance]\""));
    const auto read = [&](const std::string& file) { return headlab::read_file(folder.path() / file); };
    const auto home = "modules/attention/" + slot + "/";
    const auto header = read(home + name + ".h"), source = read(home + name + ".cpp"),
               test = read("tests/" + home + name + "_test.cpp"), spec = read("experiments/" + name + ".json"),
               registry = read(home + "registry.cpp"), rows = read("tests/modules/conformance_test.cpp");
    CHECK_THAT(header, ContainsSubstring("class " + type + " : public"));
    CHECK_THAT(source, ContainsSubstring("#include \"" + home + name + ".h\""));
    CHECK_THAT(test, ContainsSubstring("\"[" + name + "]\""));
    CHECK_THAT(spec, ContainsSubstring("\"name\": \"" + name + "\""));
    CHECK_THAT(registry, ContainsSubstring(".entry<" + type + ", " + type + "Options>(\"" + name + "\""));
    CHECK_THAT(registry, ContainsSubstring("#include \"" + home + name + ".h\""));
    CHECK_THAT(rows, ContainsSubstring("add(\"" + slot + "." + name + "\""));
    for (const auto& text : {header, source, test, spec}) {
      CHECK_THAT(text, !ContainsSubstring("my_" + slot));
      CHECK_THAT(text, !ContainsSubstring("tools/templates"));
    }
    const auto again = new_in(folder.path(), "head " + name + " --slot " + slot);
    CHECK(again.code == 2);
    CHECK_THAT(again.err, ContainsSubstring("is there already"));
  }
}

TEST_CASE("new refuses names that are taken or no names, and a place that is no checkout", "[cli]") {
  const Folder folder;
  const auto nowhere = new_in(folder.path(), "head mine");
  CHECK(nowhere.code == 2);
  CHECK_THAT(nowhere.err, ContainsSubstring("new: expected to be called within a checkout of headlab"));
  copy_what_new_needs(folder.path());
  CHECK_THAT(new_in(folder.path(), "head scalar").err,
             ContainsSubstring("the slot gate has an entry \"scalar\" already"));
  CHECK_THAT(new_in(folder.path(), "head Wide-Gate").err, ContainsSubstring("expected small letters, digits and _"));
  CHECK_THAT(new_in(folder.path(), "head wide --slot weigh").err, ContainsSubstring("--slot"));
}

TEST_CASE("the specs that new writes are right as they stand, but for the entry's name", "[cli]") {
  const Folder folder;
  for (const std::string slot : {"gate", "mix", "position"}) {
    auto spec = headlab::read_file(in_source("tools/templates/" + slot + "/my_" + slot + ".json"));
    const std::string known = slot == "gate"  ? "scalar"
                              : slot == "mix" ? "low_rank"
                                              : "alibi",
                      mine = "\"my_" + slot + "\"";
    for (auto at = spec.find(mine); at != std::string::npos; at = spec.find(mine))
      spec.replace(at, mine.size(), "\"" + known + "\"");
    const auto checked = run_program({"check", folder.write(slot + ".json", spec).string()});
    INFO(checked.err);
    CHECK(checked.code == 0);
  }
}
