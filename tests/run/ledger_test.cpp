#include "src/run/ledger.h"

#include "modules/base/atomic_file.h"
#include "src/checkpoint/json_file.h"
#include "tests/catch.h"
#include "tests/support/program.h"

namespace headlab {
namespace {

LedgerEntry entry(const std::string& spec, const std::string& name, const std::string& answer) {
  return {spec,
          name,
          "1905.09418",
          paper_number(spec),
          3,
          12.5,
          {{"few heads | are \"enough\"", "random heads", "left.accuracy >= 0.99",
            "0.998 >= 0.99; difference +0.008 (+0.004 to +0.012), 3 seeds", answer, 0.008, 0.004, 0.012, 3}},
          ""};
}

}  // namespace

TEST_CASE("the name of a spec's file begins with its paper's number, or has none", "[run]") {
  CHECK(paper_number("experiments/papers/22-few-heads.json") == 22);
  CHECK(paper_number("01-windows.json") == 1);
  for (const auto* none : {"quickstart.json", "22.json", "table-3.json", "22few.json", ""})
    CHECK(paper_number(none) == 0);
}

TEST_CASE("the ledger keeps what earlier calls found, in the order of the papers, and replaces what is found again",
          "[run]") {
  const test::Folder folder;
  const auto out = folder.path() / "runs";
  keep_in_ledger(out, {entry("e/54-b.json", "b", "holds")});
  keep_in_ledger(out, {entry("e/22-a.json", "a", "not enough evidence"), entry("e/other.json", "c", "holds")});
  keep_in_ledger(out, {entry("e/54-b.json", "b", "does not hold")});
  const auto json = read_ordered_json_file(out / "ledger.json");
  REQUIRE(json["specs"].size() == 3);
  CHECK(json["specs"][0]["name"] == "a");
  CHECK(json["specs"][1]["number"] == 54);
  CHECK(json["specs"][1]["claims"][0]["answer"] == "does not hold");
  CHECK(json["specs"][1]["claims"][0]["low"] == 0.004);
  CHECK(json["specs"][2]["name"] == "c");
  CHECK(read_file(out / "ledger.csv") ==
        "spec,number,paper,claim,control,expected,measured,difference,low,high,runs,verdict\n"
        "e/22-a.json,22,1905.09418,\"few heads | are \"\"enough\"\"\",random heads,left.accuracy >= 0.99,"
        "\"0.998 >= 0.99; difference +0.008 (+0.004 to +0.012), 3 seeds\",0.008,0.004,0.012,3,not enough evidence\n"
        "e/54-b.json,54,1905.09418,\"few heads | are \"\"enough\"\"\",random heads,left.accuracy >= 0.99,"
        "\"0.998 >= 0.99; difference +0.008 (+0.004 to +0.012), 3 seeds\",0.008,0.004,0.012,3,does not hold\n"
        "e/other.json,0,1905.09418,\"few heads | are \"\"enough\"\"\",random heads,left.accuracy >= 0.99,"
        "\"0.998 >= 0.99; difference +0.008 (+0.004 to +0.012), 3 seeds\",0.008,0.004,0.012,3,holds\n");
  folder.write("runs/ledger.json", "[");
  CHECK_THROWS_AS(keep_in_ledger(out, {entry("e/22-a.json", "a", "holds")}), FileError);
}

TEST_CASE("the ledger as text and as Markdown has paper, claim with its control, expected, measured and verdict",
          "[run]") {
  std::vector<LedgerEntry> entries{entry("e/22-a.json", "a", "holds"),
                                   entry("e/54-b.json", "b", "not enough evidence")};
  entries.push_back({"e/7-c.json", "c", "2210.05144", 7, 0, 0, {}, "the data is not there"});
  const auto text = ledger_text(entries, 240);
  CHECK_THAT(text, ContainsSubstring("few heads | are \"enough\" (control: random heads)") &&
                       ContainsSubstring("22  1905.09418  22-a") && ContainsSubstring("the data is not there") &&
                       ContainsSubstring("failed"));
  const auto narrow = ledger_text(entries, 80);  // no table, and nothing is cut
  CHECK_THAT(narrow, ContainsSubstring(
                         "22  22-a  1905.09418\n"
                         "  holds                few heads | are \"enough\" (control: random heads)\n"
                         "                       left.accuracy >= 0.99\n"
                         "                       0.998 >= 0.99; difference +0.008 (+0.004 to +0.012), 3 seeds\n") &&
                         ContainsSubstring("7  7-c  2210.05144\n  failed               the data is not there\n"));
  CHECK(ledger_answer(entries) ==
        "2 claims: 1 holds, 0 do not hold, 1 have not enough evidence; 1 of the specs failed");
  CHECK_THAT(markdown_table(entries),
             ContainsSubstring("| 22-a.json | few heads \\| are \"enough\" (1905.09418); control: random heads | "
                               "`left.accuracy >= 0.99` | 0.998 >= 0.99;") &&
                 ContainsSubstring("3 seeds | holds |\n") &&
                 ContainsSubstring("3 seeds | **not enough evidence** |\n") &&
                 ContainsSubstring("| 7-c.json | | | the data is not there | **failed** |\n"));
}

}  // namespace headlab
