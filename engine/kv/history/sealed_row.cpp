#include "engine/kv/history/sealed_row.h"

#include <cstring>

#include "engine/kv/history/byte_codec.h"
#include "engine/kv/history/record.h"

namespace vigil::history {
namespace {

constexpr std::size_t kRowPrefix = 2 + kNonceBytes;

std::string_view row_tag(const Tag& tag) {
  return {reinterpret_cast<const char*>(tag.data()), tag.size()};
}

}  // namespace

std::string seal_row(std::uint8_t version, std::string_view key, std::string body, const SecretKey* secret) {
  const Nonce nonce = secret != nullptr ? new_nonce() : Nonce{};
  std::string bytes;
  ByteWriter writer(bytes);
  writer.fixed(version);
  writer.fixed(static_cast<std::uint8_t>(secret != nullptr ? 1 : 0));
  writer.text({reinterpret_cast<const char*>(nonce.data()), nonce.size()});
  if (secret != nullptr) {
    Sealing sealing(*secret, nonce, std::string(key) + bytes);
    sealing.add(bytes_of(body), reinterpret_cast<std::byte*>(body.data()));
    bytes += body;
    bytes += row_tag(sealing.finish());
  } else {
    bytes += body;
    bytes += row_tag(sum_of(std::string(key) + bytes));
  }
  return bytes;
}

std::optional<std::string> open_row(std::uint8_t version, std::string_view key, std::string_view bytes,
                                    const SecretKey* secret) {
  ByteReader reader(bytes);
  const auto is = reader.fixed<std::uint8_t>();
  const auto sealed = reader.fixed<std::uint8_t>();
  const std::string_view nonce_text = reader.text(kNonceBytes);
  if (is != version || sealed != (secret != nullptr ? 1 : 0) || reader.left() < kTagBytes)
    return std::nullopt;
  std::string body(reader.text(reader.left() - kTagBytes));
  Tag tag;
  std::memcpy(tag.data(), bytes.data() + bytes.size() - kTagBytes, tag.size());
  if (secret != nullptr) {
    Nonce nonce;
    std::memcpy(nonce.data(), nonce_text.data(), nonce.size());
    const std::string bound = std::string(key).append(bytes.substr(0, kRowPrefix));
    const std::span<std::byte> sealed_body(reinterpret_cast<std::byte*>(body.data()), body.size());
    if (!open_sealed(*secret, nonce, bound, sealed_body, tag)) return std::nullopt;
  } else if (sum_of(std::string(key).append(bytes.substr(0, bytes.size() - kTagBytes))) != tag) {
    return std::nullopt;
  }
  return body;
}

}  // namespace vigil::history
