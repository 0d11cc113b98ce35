#pragma once

#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

namespace headlab {

class Progress;

/// What a run prints, for a person; the same lines go to log.txt. Progress is a bar on a terminal and plain lines in a
/// pipe. Brief: only that a run has ended. Quiet: nothing.
class Console {
 public:
  enum class Kind { normal, brief, quiet };
  explicit Console(Kind kind = Kind::normal);
  ~Console();
  void log_to(const std::string& path);
  /// "  train      text"
  void line(const std::string& label, const std::string& text);
  void plain(const std::string& text);
  /// What is printed of a run that has ended where all else is left out.
  void ended(const std::string& text);
  /// A bar that moves; `text` says what is to be known now. Finished by the next line().
  void progress(const std::string& label, int64_t done, int64_t total, const std::string& text);

 private:
  void finish();
  Kind kind_;
  std::ofstream log_;
  std::unique_ptr<Progress> progress_;
  std::string progress_label_;
};

}  // namespace headlab
