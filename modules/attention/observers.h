#pragma once

#include "modules/attention/slots.h"

namespace headlab {

/// The taps of the gates that must see one call, until its end.
class Observers {
 public:
  Observers(const std::vector<std::shared_ptr<Gate>>& gates, const AttentionCall& call,
            const std::vector<int64_t>& group_of)
      : taps_(call.run.taps), before_(taps_.size()) {
    for (const auto& gate : gates)
      if (auto tap = gate->observer(call, group_of)) {
        taps_.push_back(tap.get());
        own_.push_back(std::move(tap));
      }
  }
  ~Observers() { taps_.resize(before_); }
  Observers(const Observers&) = delete;
  Observers& operator=(const Observers&) = delete;

 private:
  std::vector<Tap*>& taps_;
  std::size_t before_;
  std::vector<std::unique_ptr<Tap>> own_;
};

}  // namespace headlab
