#include "src/checkpoint/rng.h"

#include "modules/base/error.h"
#include "modules/tensor/torch.h"
#include "tests/catch.h"

using namespace headlab;

TEST_CASE("base64 is that of RFC 4648", "[checkpoint]") {
  std::pair<std::string, std::string> vectors[] = {{"", ""},
                                                   {"f", "Zg=="},
                                                   {"fo", "Zm8="},
                                                   {"foo", "Zm9v"},
                                                   {"foob", "Zm9vYg=="},
                                                   {"fooba", "Zm9vYmE="},
                                                   {"foobar", "Zm9vYmFy"},
                                                   {std::string("\0\xff\xfe", 3), "AP/+"}};
  for (auto& [bytes, text] : vectors) {
    CHECK(base64_encode(bytes) == text);
    CHECK(base64_decode(text) == bytes);
  }
  for (auto* bad : {"Zg=", "Zg==Zg==", "Z===", "Zm9*", "Zg=a", "===="}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(base64_decode(bad), FileError);
  }
}

TEST_CASE("restored random states draw the same numbers, dropout included", "[checkpoint]") {
  torch::manual_seed(7);
  auto input = torch::ones({1000});
  torch::randn({5});  // an odd count: the generator holds half of a pair of normal numbers
  auto states = rng_states();
  auto draw = [&] {
    return std::vector<torch::Tensor>{torch::randn({3}), torch::dropout(input, 0.3, true), torch::rand({9})};
  };
  auto first = draw();
  auto other = draw();
  set_rng_states(nlohmann::json::parse(states.dump()));
  auto again = draw();
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(again[i].equal(first[i]));
    CHECK_FALSE(other[i].equal(first[i]));
  }
}

TEST_CASE("what is no random state is refused and changes nothing", "[checkpoint]") {
  torch::manual_seed(3);
  auto before = rng_states();
  CHECK_THROWS_WITH(set_rng_states({{"cpu", "AAAA"}}),
                    ContainsSubstring("random state of the CPU: expected ") && ContainsSubstring(" bytes, got 3"));
  CHECK_THROWS_AS(set_rng_states(nlohmann::json::array()), FileError);
  CHECK_THROWS_AS(set_rng_states({{"cpu", 5}}), FileError);
  CHECK(rng_states() == before);
}
