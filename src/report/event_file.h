#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headlab {

/// A file of events as TensorBoard reads them: records of TFRecord, each an Event of tensorflow/core/util/event.proto.
/// Each call writes one event and flushes it, so that a TensorBoard that watches shows a run while it goes on.
/// Numbers that are not finite are written as they are; TensorBoard leaves them out.
class EventFile {
 public:
  /// Makes the file anew. Throws FileError where it can't.
  explicit EventFile(const std::filesystem::path& path, double wall_time);

  /// wall_time: seconds since 1970.
  void scalar(const std::string& tag, int64_t step, double value, double wall_time);
  /// Of finite values, in `buckets` of equal width; nothing without any.
  void histogram(const std::string& tag, int64_t step, const std::vector<double>& values, double wall_time,
                 int buckets = 30);
  /// Shown as Markdown.
  void text(const std::string& tag, int64_t step, const std::string& markdown, double wall_time);

 private:
  void record(const std::string& event);
  std::filesystem::path path_;
  std::ofstream file_;
};

/// Now, as events have it.
double seconds_since_1970();

/// CRC-32C (Castagnoli) of the bytes, as TFRecord masks it: rotated right by 15 bits, plus 0xa282ead8.
uint32_t masked_crc32c(std::string_view bytes);

/// The scalars of a row of metrics.jsonl: "<stage>/loss", "<stage>/valid/bleu" and so on, at its step.
void add_row(EventFile& events, const nlohmann::json& row, double wall_time);

/// What a run came to: its question, claims and spec as text, samples of translations, and a histogram of each stage's
/// head scores.
void add_results(EventFile& events, const nlohmann::ordered_json& results, const nlohmann::ordered_json& spec,
                 double wall_time);

}  // namespace headlab
