#include "engine/stream/refresh.h"

#include <stdexcept>
#include <string>

namespace vigil::stream {
namespace {

class All final : public RefreshPolicy {
 public:
  bool keeps_keys() const override { return false; }
  bool refreshes(const Kept&) const override { return true; }
};

class None final : public RefreshPolicy {
 public:
  bool keeps_keys() const override { return true; }
  bool refreshes(const Kept&) const override { return false; }
};

}  // namespace

RefreshPolicyPtr make_refresh(std::string_view name) {
  if (name == "all") return std::make_shared<All>();
  if (name == "none") return std::make_shared<None>();
  throw std::invalid_argument("\"" + std::string(name) + "\" is no refresh policy: all, none");
}

}  // namespace vigil::stream
