#include "src/data/paths.h"

#include <cstdlib>
#include <fstream>
#include <optional>

#include "modules/base/error.h"
#include "tests/catch.h"
#include "tests/support/scratch.h"

using namespace headlab;

namespace {

/// Sets HEADLAB_DATA for a while.
struct DataFolder {
  explicit DataFolder(const char* folder) {
    if (const char* value = std::getenv("HEADLAB_DATA")) before = value;
    folder ? setenv("HEADLAB_DATA", folder, 1) : unsetenv("HEADLAB_DATA");
  }
  ~DataFolder() { before ? setenv("HEADLAB_DATA", before->c_str(), 1) : unsetenv("HEADLAB_DATA"); }
  std::optional<std::string> before;
};

}  // namespace

TEST_CASE("data is looked for beside the spec, then in HEADLAB_DATA", "[data]") {
  Scratch beside, shared;
  const DataFolder folder(shared.path.c_str());
  const std::string spec_folder = beside.path.string();
  std::ofstream(shared / "a.txt") << "shared\n";
  CHECK(resolve_data_path("a.txt", spec_folder) == (shared / "a.txt").string());
  std::ofstream(beside / "a.txt") << "beside\n";
  CHECK(resolve_data_path("a.txt", spec_folder) == (beside / "a.txt").string());
  CHECK(resolve_data_path((shared / "a.txt").string(), spec_folder) == (shared / "a.txt").string());
}

TEST_CASE("a data file that is nowhere is told with the places looked in", "[data]") {
  Scratch shared;
  {
    const DataFolder folder(shared.path.c_str());
    CHECK_THROWS_WITH(resolve_data_path("data/train.en", "experiments"),
                      "no such file: data/train.en (looked in experiments/ and in HEADLAB_DATA)");
    CHECK_THROWS_WITH(resolve_data_path("/no/train.en", "experiments"), "no such file: /no/train.en");
    CHECK_THROWS_WITH(resolve_data_path("..", shared.path.string()), ContainsSubstring("no such file: .."));
  }
  const DataFolder unset(nullptr);
  CHECK_THROWS_WITH(resolve_data_path("data/train.en", ""),
                    "no such file: data/train.en (looked in ./ and in HEADLAB_DATA, which is not set)");
}
