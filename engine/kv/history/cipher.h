// AES-256-GCM as OpenSSL has it: keys that are destroyed, and how one is wrapped by another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace vigil::history {

inline constexpr std::size_t kNonceBytes = 12;
inline constexpr std::size_t kTagBytes = 16;

using Nonce = std::array<std::uint8_t, kNonceBytes>;
using Tag = std::array<std::uint8_t, kTagBytes>;

/// 256 bits that are overwritten when it goes. Not thread-safe while it is written.
class SecretKey {
 public:
  SecretKey() = default;
  ~SecretKey();
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;

  /// By OpenSSL's generator. Throws HistoryError if that has nothing to give.
  static SecretKey random();
  /// Of a file that holds 32 bytes, or 64 hexadecimal digits and perhaps an end of line (`openssl rand -hex
  /// 32`), and that is open to its owner alone. Throws HistoryError, whose text has nothing of the file.
  static SecretKey of_file(const std::filesystem::path& file);

  std::span<const std::uint8_t, 32> bytes() const { return bytes_; }
  std::span<std::uint8_t, 32> bytes() { return bytes_; }
  friend bool operator==(const SecretKey&, const SecretKey&) = default;

 private:
  std::array<std::uint8_t, 32> bytes_{};
};

/// Random, of 96 bits: a key of one camera and hour seals some thousand texts, far below the 2^32 that NIST
/// SP 800-38D allows for such nonces; nor does a folder that was restored from a backup repeat one. Throws
/// HistoryError.
Nonce new_nonce();

/// Encrypts `plain` into `sealed`, of the same length (or the same bytes); further stretches follow until
/// `finish`. One text an object. Not thread-safe. Throws HistoryError if OpenSSL fails.
class Sealing {
 public:
  /// `bound`: additional data that has to be the same when it is opened.
  Sealing(const SecretKey& key, const Nonce& nonce, std::string_view bound);
  ~Sealing();
  Sealing(const Sealing&) = delete;
  Sealing& operator=(const Sealing&) = delete;

  void add(std::span<const std::byte> plain, std::byte* sealed);
  Tag finish();

 private:
  void* context_;
};

/// Decrypts where they are; false, and the bytes are of no use, if the tag does not fit key, nonce, bound
/// data and bytes.
bool open_sealed(const SecretKey& key, const Nonce& nonce, std::string_view bound, std::span<std::byte> bytes,
                 const Tag& tag);

/// Nonce, key and tag: 60 bytes. `bound`: what the key is for, which has to be the same when it is unwrapped.
inline constexpr std::size_t kWrappedBytes = kNonceBytes + 32 + kTagBytes;
std::string wrap(const SecretKey& key, const SecretKey& master, std::string_view bound);
/// Nothing if it was wrapped by another master, for something else, or not at all.
std::optional<SecretKey> unwrap(std::string_view wrapped, const SecretKey& master, std::string_view bound);

}  // namespace vigil::history
