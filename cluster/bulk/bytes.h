// Bytes that do not change any more, with whoever keeps them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace vigil::cluster {

/// A range of bytes that shares its owner: a copy of it copies no byte. Whoever made the bytes does not
/// change them any more. Different objects may be used on different threads.
class Bytes {
 public:
  Bytes() = default;
  /// `first` keeps the owner of all `size` bytes alive (std::shared_ptr's aliasing).
  Bytes(std::shared_ptr<const std::byte> first, std::size_t size) : first_(std::move(first)), size_(size) {}
  explicit Bytes(std::string text) {
    const auto owner = std::make_shared<const std::string>(std::move(text));
    first_ = {owner, reinterpret_cast<const std::byte*>(owner->data())};
    size_ = owner->size();
  }

  const std::byte* data() const { return first_.get(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<const std::byte> span() const { return {data(), size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data()), size_}; }

  /// A range inside this one, of the same owner.
  Bytes part(std::size_t offset, std::size_t size) const { return {{first_, data() + offset}, size}; }

 private:
  std::shared_ptr<const std::byte> first_;
  std::size_t size_ = 0;
};

}  // namespace vigil::cluster
