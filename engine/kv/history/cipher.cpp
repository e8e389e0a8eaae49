#include "engine/kv/history/cipher.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/durable.h"
#include "base/private_file.h"
#include "engine/kv/history/byte_codec.h"
#include "engine/kv/history/history_error.h"

namespace vigil::history {
namespace {

struct ContextDeleter {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, ContextDeleter>;

void require(bool condition) {
  if (!condition) throw HistoryError("history: OpenSSL cannot encrypt");
}

const unsigned char* octets(const void* bytes) {
  return static_cast<const unsigned char*>(bytes);
}

int length_of(std::size_t bytes) {
  require(bytes <= static_cast<std::size_t>(std::numeric_limits<int>::max()));
  return static_cast<int>(bytes);
}

void fill_randomly(std::span<std::uint8_t> bytes) {
  if (RAND_bytes(bytes.data(), length_of(bytes.size())) != 1)
    throw HistoryError("history: OpenSSL has no random bytes");
}

std::optional<std::uint8_t> digit(char text) {
  if (text >= '0' && text <= '9') return static_cast<std::uint8_t>(text - '0');
  if (text >= 'a' && text <= 'f') return static_cast<std::uint8_t>(text - 'a' + 10);
  if (text >= 'A' && text <= 'F') return static_cast<std::uint8_t>(text - 'A' + 10);
  return std::nullopt;
}

bool read_digits(std::string_view text, std::span<std::uint8_t, 32> bytes) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (text.size() != 2 * bytes.size()) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto high = digit(text[2 * i]);
    const auto low = digit(text[2 * i + 1]);
    if (!high || !low) return false;
    bytes[i] = static_cast<std::uint8_t>(*high << 4U | *low);
  }
  return true;
}

}  // namespace

SecretKey::~SecretKey() {
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
}

SecretKey SecretKey::random() {
  SecretKey key;
  fill_randomly(key.bytes());
  return key;
}

SecretKey SecretKey::of_file(const std::filesystem::path& file) {
  const std::string name = file.string();
  // One more than the longest, to see that it ends.
  std::array<char, 67> text{};
  std::size_t size = 0;
  try {
    const base::Descriptor opened = base::open_file(file, O_RDONLY);
    struct stat status {};
    if (::fstat(opened.number(), &status) != 0) throw base::FileError(file, "cannot look at it", errno);
    if (const auto fault = base::fault_of_privacy(status)) throw HistoryError(name + ": " + *fault);
    while (size < text.size()) {
      const ssize_t got = ::read(opened.number(), text.data() + size, text.size() - size);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw base::FileError(file, "cannot read", errno);
      if (got == 0) break;
      size += static_cast<std::size_t>(got);
    }
  } catch (const base::FileError& error) {
    throw HistoryError(error.what());
  }
  SecretKey key;
  bool right = true;
  if (size == key.bytes().size()) {
    std::copy_n(octets(text.data()), size, key.bytes().begin());
  } else {
    right = size < text.size() && read_digits({text.data(), size}, key.bytes());
  }
  OPENSSL_cleanse(text.data(), text.size());
  if (!right) throw HistoryError(name + ": holds neither 32 bytes nor 64 hexadecimal digits");
  return key;
}

Nonce new_nonce() {
  Nonce nonce;
  fill_randomly(nonce);
  return nonce;
}

Sealing::Sealing(const SecretKey& key, const Nonce& nonce, std::string_view bound) : context_(nullptr) {
  Context context(EVP_CIPHER_CTX_new());
  int length = 0;
  require(context && EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.bytes().data(),
                                        nonce.data()) == 1);
  require(bound.empty() || EVP_EncryptUpdate(context.get(), nullptr, &length, octets(bound.data()),
                                             length_of(bound.size())) == 1);
  context_ = context.release();
}

Sealing::~Sealing() {
  EVP_CIPHER_CTX_free(static_cast<EVP_CIPHER_CTX*>(context_));
}

void Sealing::add(std::span<const std::byte> plain, std::byte* sealed) {
  if (plain.empty()) return;
  int length = 0;
  require(EVP_EncryptUpdate(static_cast<EVP_CIPHER_CTX*>(context_), reinterpret_cast<unsigned char*>(sealed),
                            &length, octets(plain.data()), length_of(plain.size())) == 1);
}

Tag Sealing::finish() {
  auto* const context = static_cast<EVP_CIPHER_CTX*>(context_);
  Tag tag;
  int length = 0;
  require(EVP_EncryptFinal_ex(context, tag.data(), &length) == 1);
  require(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, length_of(tag.size()), tag.data()) == 1);
  return tag;
}

bool open_sealed(const SecretKey& key, const Nonce& nonce, std::string_view bound, std::span<std::byte> bytes,
                 const Tag& tag) {
  const Context context(EVP_CIPHER_CTX_new());
  int length = 0;
  auto* const data = reinterpret_cast<unsigned char*>(bytes.data());
  Tag expected = tag;
  require(context && EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key.bytes().data(),
                                        nonce.data()) == 1);
  require(bound.empty() || EVP_DecryptUpdate(context.get(), nullptr, &length, octets(bound.data()),
                                             length_of(bound.size())) == 1);
  require(bytes.empty() ||
          EVP_DecryptUpdate(context.get(), data, &length, data, length_of(bytes.size())) == 1);
  require(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, length_of(expected.size()),
                              expected.data()) == 1);
  Tag none;
  return EVP_DecryptFinal_ex(context.get(), none.data(), &length) == 1;
}

std::string wrap(const SecretKey& key, const SecretKey& master, std::string_view bound) {
  const Nonce nonce = new_nonce();
  std::string result(kWrappedBytes, '\0');
  std::copy(nonce.begin(), nonce.end(), result.begin());
  Sealing sealing(master, nonce, bound);
  sealing.add(std::as_bytes(key.bytes()), reinterpret_cast<std::byte*>(result.data() + kNonceBytes));
  const Tag tag = sealing.finish();
  std::copy(tag.begin(), tag.end(), result.end() - kTagBytes);
  return result;
}

std::optional<SecretKey> unwrap(std::string_view wrapped, const SecretKey& master, std::string_view bound) {
  if (wrapped.size() != kWrappedBytes) return std::nullopt;
  Nonce nonce;
  Tag tag;
  SecretKey key;
  std::copy_n(octets(wrapped.data()), kNonceBytes, nonce.begin());
  std::copy_n(octets(wrapped.data() + kNonceBytes), key.bytes().size(), key.bytes().begin());
  std::copy_n(octets(wrapped.data() + kWrappedBytes - kTagBytes), kTagBytes, tag.begin());
  if (!open_sealed(master, nonce, bound, std::as_writable_bytes(key.bytes()), tag)) return std::nullopt;
  return key;
}

}  // namespace vigil::history
