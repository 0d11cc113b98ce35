#include "src/run/estimate.h"

#include "modules/base/atomic_file.h"
#include "tests/catch.h"
#include "tests/run/tiny.h"
#include "tests/support/program.h"

namespace headlab {
namespace {

/// Two arms with two seeds each, of one stage, and a place for their runs.
struct Four {
  test::Folder folder;
  std::vector<RunVariant> variants = load_spec(
      folder
          .write("x.json",
                 test::tiny_spec(R"([{"evaluate": {"metrics": ["loss"]}}])",
                                 R"(, "arms": {"a": {}, "b": {"model.embedding.scale": false}}, "seeds": [1, 2])"))
          .string(),
      {});
  RunFlags flags;
  Four() { flags.out = folder.path() / "runs"; }
  void leave(std::size_t run, const std::string& results) const {
    const auto place = folder_of_run(*variants[run].spec, flags);
    make_folders(place);
    write_file_atomically(place / "results.json", results);
  }
};

std::string ended(const std::string& group, double seconds) {
  return R"({"group": ")" + group + R"(", "seconds": )" + std::to_string(seconds) +
         R"(, "stages": {"evaluate": {"wall_seconds": 1}}})";
}

}  // namespace

TEST_CASE("where no run has ended, how long the runs take is unknown and said to be", "[run]") {
  const Four four;
  REQUIRE(four.variants.size() == 4);
  const auto made = estimate(four.variants, four.flags, 1);
  CHECK((made.runs == 4 && made.done == 0 && made.unknown == 4 && made.left == 0));
  CHECK(estimate_text(made) == "4 runs to do: unknown until the first run has ended");
  CHECK(left_text(made) == "0 of 4 runs done, time left unknown until the first run has ended");
}

TEST_CASE("runs that have ended are not run again, and the others are taken to last as long as those of their group",
          "[run]") {
  const Four four;
  four.leave(0, ended("a", 100));
  auto made = estimate(four.variants, four.flags, 1);
  CHECK((made.done == 1 && made.used == 100 && made.unknown == 0 && made.left == 300 &&
         made.judged_by == 1));  // b: as any other
  four.leave(2, ended("b", 40));
  made = estimate(four.variants, four.flags, 1);
  CHECK((made.done == 2 && made.used == 140 && made.left == 140));
  CHECK(estimate_text(made) ==
        "2 of 4 runs done before (2 min 20 s); 2 to do: about 2 min 20 s, judged by 2 earlier runs");
  CHECK(left_text(made) == "2 of 4 runs done, about 2 min 20 s left");
  // Dealt out to two processes: 1 and 3 to one, 2 and 4 to the other, which has both that are to do.
  CHECK(estimate(four.variants, four.flags, 2).left == 140);
  CHECK(estimate(four.variants, four.flags, 3).left == 100);
  // What a stopped run has done is taken off.
  four.leave(1, R"({"stages": {"train": {"wall_seconds": 30}}})");
  CHECK(estimate(four.variants, four.flags, 1).left == 110);
  four.leave(1, ended("a", 100));
  four.leave(3, ended("b", 40));
  CHECK(estimate_text(estimate(four.variants, four.flags, 1)) ==
        "all 4 runs done before (4 min 40 s); nothing is run again");
}

TEST_CASE("a run of which a stage is missing or whose results are damaged is to do", "[run]") {
  const Four four;
  four.leave(0, R"({"seconds": 10, "stages": {}})");
  four.leave(1, "{");
  four.leave(2, "[]");
  const auto made = estimate(four.variants, four.flags, 1);
  CHECK((made.done == 0 && made.unknown == 0 && made.left == 40));
}

TEST_CASE("where some are known, the time is at least theirs", "[run]") {
  Estimate both{4, 1, 60, 0, 180, 1};
  both += Estimate{2, 0, 0, 2, 0, 0};
  CHECK(estimate_text(both) ==
        "1 of 6 runs done before (1 min 0 s); 5 to do: at least 3 min 0 s, judged by 1 earlier run; of 2 nothing is "
        "known before the first of their "
        "kind has ended");
  CHECK(left_text(both) == "1 of 6 runs done, at least 3 min 0 s left");
}

}  // namespace headlab
