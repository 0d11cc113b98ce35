#include "src/data/frames/phones.h"

namespace headlab {

void PhonesOptions::describe(Fields& fields) {
  fields.add("phones", phones, "different phones, each with its prototype").at_least(2);
  fields.add("width", width, "numbers of a frame").at_least(1);
  fields.add("symbols", symbols, "phones of a text");
  fields.add("frames", frames, "frames that a phone lasts");
  fields.add("noise", noise, "standard deviation of what is added to each number of a prototype").at_least(0);
  fields.add("prototypes", prototypes, "seed of the prototypes").at_least(0);
  fields.add("train", train, "texts to train on").at_least(1).unit("examples");
  fields.add("valid", valid, "texts for validation").at_least(1).unit("examples");
  fields.add("test", test, "texts for the final evaluation").at_least(1).unit("examples");
  fields.add("seed", seed, "of all draws but the prototypes'").at_least(-1).means("-1: the run's seed");
}

FrameData PhonesOptions::load(const std::string&, uint64_t run) const { return draw_phones(*this, run); }

FrameData draw_phones(const PhonesOptions& options, uint64_t run) {
  FrameData data{options.width, {}, {}};
  for (int64_t phone = 0; phone < options.phones; ++phone) data.symbols.push_back("p" + std::to_string(phone));
  auto of_prototypes = Random::stream(static_cast<uint64_t>(options.prototypes), {text_hash("prototypes")});
  std::vector<double> prototypes(static_cast<std::size_t>(options.phones * options.width));
  for (auto& number : prototypes) number = of_prototypes.normal();
  const auto seed = options.seed < 0 ? run : static_cast<uint64_t>(options.seed);
  uint64_t stream = 0;
  for (const auto& [name, count] :
       {std::pair<std::string, int64_t>{"test", options.test}, {"valid", options.valid}, {"train", options.train}}) {
    auto random = Random::stream(seed, {stream++});
    const bool test = name == "test";
    for (int64_t i = 0; i < count; ++i) {
      auto& text = data.parts[name].emplace_back();
      const auto length = options.symbols.draw(random, test);
      for (int64_t s = 0; s < length; ++s) {
        text.symbols.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(options.phones))));
        text.at_frame.insert(text.at_frame.end(), static_cast<std::size_t>(options.frames.draw(random, test)),
                             text.symbols.back());
      }
      for (const auto phone : text.at_frame)
        for (int64_t k = 0; k < options.width; ++k)
          text.frames.push_back(static_cast<float>(prototypes[static_cast<std::size_t>(phone * options.width + k)] +
                                                   options.noise * random.normal()));
    }
  }
  return data;
}

}  // namespace headlab
