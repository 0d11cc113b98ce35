#include <cstdio>

#include "modules/embedding/embedding.h"
#include "modules/model/frame_reader.h"
#include "modules/output/output.h"
#include "modules/recurrent/decoder.h"
#include "src/cli/command.h"
#include "src/cli/lookup.h"
#include "src/convert/conversion.h"
#include "src/data/frames/recording_list.h"
#include "src/data/frames/sources.h"
#include "src/heads/scorer.h"
#include "src/measure/measure.h"
#include "src/run/stage.h"
#include "src/spec/catalogue_text.h"
#include "src/spec/schema.h"
#include "src/task/classification.h"
#include "src/task/generated.h"
#include "src/task/language_model.h"
#include "src/task/span.h"
#include "src/task/tagging.h"
#include "src/task/translation.h"
#include "src/train/trainer.h"

namespace headlab {
namespace {

// Every slot a spec can choose from.
std::vector<const Catalogue*> slots() {
  return {&model_catalogue(),
          &project_catalogue(),
          &adapter_catalogue(),
          &position_catalogue(),
          &score_catalogue(),
          &normalise_catalogue(),
          &gate_catalogue(),
          &mix_catalogue(),
          &feed_forward_catalogue(),
          &norm_catalogue(),
          &residual_catalogue(),
          &block_catalogue(),
          &mixer_catalogue(),
          &added_position_catalogue(),
          &output_catalogue(),
          &task_catalogue(),
          &translation_data_catalogue(),
          &plain_text_catalogue(),
          &labelled_text_catalogue(),
          &tagged_text_catalogue(),
          &span_catalogue(),
          &frame_source_catalogue(),
          &recording_list_catalogue(),
          &generator_catalogue(),
          &frame_reader_catalogue(),
          &energy_catalogue(),
          &merge_catalogue(),
          &stage_catalogue(),
          &scorer_catalogue(),
          &measure_catalogue(),
          &conversion_catalogue(),
          &optimizer_catalogue(),
          &schedule_catalogue(),
          &penalty_catalogue(),
          &head_mask_catalogue(),
          &augmentation_catalogue()};
}

}  // namespace

std::vector<std::string> names_that_list_knows() {
  std::vector<std::string> names;
  for (const auto* slot : slots()) {
    names.push_back(slot->slot);
    for (const auto& entry : slot->entries) names.push_back(slot->slot + "." + entry.name);
  }
  return names;
}

std::function<int()> add_list(CLI::App& command) {
  struct Wanted {
    std::string what;
    bool full = false;
  };
  auto wanted = std::make_shared<Wanted>();
  command.add_option("what", wanted->what, "a slot (gate) or an entry (gate.hard_concrete)");
  command.add_flag("--full", wanted->full, "with options, their types, defaults, ranges and meaning");
  return [wanted] {
    std::fputs(catalogue_text(slots(), wanted->what, wanted->full).c_str(), stdout);
    return 0;
  };
}

std::function<int()> add_schema(CLI::App&) {
  return [] {
    std::printf("%s\n", schema(RunSpec(), "headlab spec").dump(2).c_str());
    return 0;
  };
}

}  // namespace headlab
