#include "src/task/classification.h"
#include "src/task/frames.h"
#include "src/task/generated.h"
#include "src/task/language_model.h"
#include "src/task/span.h"
#include "src/task/tagging.h"
#include "src/task/transcription.h"
#include "src/task/translation.h"

namespace headlab {

const Tasks& tasks() {
  static const Tasks registry =
      Tasks("task", "data, what a model learns from it, and how well it does")
          .entry<Translation, TranslationOptions>("translation",
                                                  "source lines to target lines, by a model that generates")
          .entry<LanguageModel, LanguageModelOptions>("language_model", "the next token of plain text")
          .entry<Classification, ClassificationOptions>("classification", "one label for a text")
          .entry<Tagging, TaggingOptions>("tagging", "a tag for each word")
          .entry<FrameTask, FrameTaskOptions>("frames", "the class of each frame of a text of frames, as of speech")
          .entry<SpanTask, SpanOptions>("span", "the words of a text that answer a question", "1810.04805")
          .entry<Transcription, TranscriptionOptions>("transcription", "what is said in a text of frames, as of speech",
                                                      "1804.08050")
          .entry<GeneratedTask, GeneratedTaskOptions>("generated",
                                                      "small exercises that a program writes: copy, recall, Dyck ...");
  return registry;
}
const Catalogue& task_catalogue() { return tasks().catalogue(); }

}  // namespace headlab
