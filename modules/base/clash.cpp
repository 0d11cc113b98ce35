#include "modules/base/clash.h"

namespace headlab {

bool speaks_of(const Clash& clash, const std::string& entry) {
  const auto& with = clash.with;
  const bool whole_slot = with.size() > 2 && with.compare(with.size() - 2, 2, ".*") == 0;
  return whole_slot ? entry.compare(0, with.size() - 1, with, 0, with.size() - 1) == 0 : with == entry;
}

}  // namespace headlab
