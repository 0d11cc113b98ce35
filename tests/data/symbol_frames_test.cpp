#include "src/data/frames/symbols.h"

#include "tests/catch.h"

using namespace headlab;

TEST_CASE("a symbol of two parts is a frame with a one for each, and what is asked is a part",
          "[generated][paper-28]") {
  SymbolFramesOptions options;
  options.train = 5;
  options.valid = options.test = 3;
  const auto exercise = generate(options);
  const auto frames = symbol_frames(options, 1);
  CHECK(frames.width == 48);  // 16 values and 32 keys
  CHECK(symbol_frame_width(options) == 48);
  for (const auto& [name, examples] : exercise.parts)
    for (std::size_t n = 0; n < examples.size(); ++n) {
      const auto& text = frames.parts.at(name).at(n);
      REQUIRE(text.length(frames.width) == 32);
      for (std::size_t t = 0; t < 32; ++t) {
        std::string parts;  // in the order of the exercise's symbols: values come first
        for (std::size_t i = 48; i-- > 0;)
          if (text.frames[t * 48 + i] == 1.0F) parts += (parts.empty() ? "" : "=") + frames.symbols[i];
        CHECK(parts == exercise.symbols.name(examples[n].read[t]));
        const auto answer = examples[n].answer[t];
        if (answer == GeneratedExample::none)
          CHECK(text.at_frame[t] == -1);
        else
          CHECK(frames.symbols.at(static_cast<std::size_t>(text.at_frame[t])) == exercise.symbols.name(answer));
      }
    }
  SymbolFramesOptions pairs;
  pairs.exercise.choose("copy");
  Problems problems;
  pairs.rules(problems);
  CHECK(problems.found.size() == 1);
}
