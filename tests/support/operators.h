#pragma once

#include <ATen/record_function.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace headlab {

/// The operators that `f` ran on this thread ("aten::softmax"), with their counts: which kernel a path took.
inline std::map<std::string, int> operators_of(const std::function<void()>& f) {
  static thread_local std::map<std::string, int>* counts;
  std::map<std::string, int> found;
  counts = &found;
  struct Handle {
    at::CallbackHandle handle = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
          ++(*counts)[function.name()];
          return nullptr;
        }).scopes({at::RecordScope::FUNCTION}));
    ~Handle() { at::removeCallback(handle); }
  } handle;
  f();
  return found;
}

}  // namespace headlab
