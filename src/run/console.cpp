#include "src/run/console.h"

#include <iostream>

#include "src/terminal/format.h"
#include "src/terminal/progress.h"
#include "src/terminal/screen.h"

namespace headlab {

Console::Console(Kind kind) : kind_(kind) {}
Console::~Console() = default;

void Console::log_to(const std::string& path) { log_.open(path, std::ios::app); }

void Console::plain(const std::string& text) {
  finish();
  if (log_) log_ << text << std::endl;
  if (kind_ == Kind::normal) std::cout << text << std::endl;
}

void Console::ended(const std::string& text) {
  if (kind_ == Kind::brief) std::cout << text << std::endl;
}

void Console::line(const std::string& label, const std::string& text) { plain(labelled(label, text)); }

void Console::progress(const std::string& label, int64_t done, int64_t total, const std::string& text) {
  if (kind_ != Kind::normal) return;
  if (!progress_ || progress_label_ != label) {
    finish();
    progress_ = std::make_unique<Progress>(std::cerr, Screen::of(2), label);
    progress_label_ = label;
  }
  progress_->update(done, total, text);
}

void Console::finish() {
  if (progress_) progress_->finish();
  progress_.reset();
}

}  // namespace headlab
