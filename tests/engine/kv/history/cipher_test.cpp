// Keys and what they seal, against vectors that are not ours.
#include "engine/kv/history/cipher.h"

#include <cstdlib>
#include <filesystem>
#include <iomanip>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/kv/history/byte_codec.h"
#include "engine/kv/history/history_error.h"
#include "engine/kv/history/store_format.h"
#include "tests/engine/kv/history/history_pages.h"
#include "tests/temporary_folder.h"

namespace vigil::history {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::write_file;

std::string of_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// A file of its owner's alone.
void write_secret(const std::filesystem::path& file, const std::string& text) {
  write_file(file, text);
  std::filesystem::permissions(file, std::filesystem::perms(0600));
}

SecretKey key_of(const TemporaryFolder& folder, const std::string& hex) {
  write_secret(folder / "key", of_hex(hex));
  return SecretKey::of_file(folder / "key");
}

template <class T>
T array_of(const std::string& hex) {
  T result{};
  const std::string bytes = of_hex(hex);
  std::copy(bytes.begin(), bytes.end(), result.begin());
  return result;
}

// Test case 16 of McGrew and Viega, "The Galois/Counter Mode of Operation (GCM)".
TEST(Cipher, IsAes256Gcm) {
  const TemporaryFolder folder;
  const SecretKey key = key_of(folder, "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
  const auto nonce = array_of<Nonce>("cafebabefacedbaddecaf888");
  const std::string bound = of_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
  const std::string plain = of_hex(
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525"
      "b16aedf5aa0de657ba637b39");
  const std::string sealed = of_hex(
      "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838"
      "c5f61e6393ba7a0abcc9f662");
  std::string bytes = plain;
  auto* const data = reinterpret_cast<std::byte*>(bytes.data());
  Sealing sealing(key, nonce, bound);
  // In two stretches, of which the first one ends within a block.
  sealing.add({data, 7}, data);
  sealing.add({data + 7, bytes.size() - 7}, data + 7);
  const Tag tag = sealing.finish();
  EXPECT_EQ(bytes, sealed);
  EXPECT_EQ(tag, array_of<Tag>("76fc6ece0f4e1768cddf8853bb2d551b"));
  ASSERT_TRUE(open_sealed(key, nonce, bound, {data, bytes.size()}, tag));
  EXPECT_EQ(bytes, plain);
}

TEST(Cipher, RefusesWhatDoesNotFit) {
  const SecretKey key = SecretKey::random();
  const Nonce nonce = new_nonce();
  std::string sealed = "forty-two";
  auto* const data = reinterpret_cast<std::byte*>(sealed.data());
  Sealing sealing(key, nonce, "bound");
  sealing.add({data, sealed.size()}, data);
  const Tag tag = sealing.finish();
  const auto opens = [&](const SecretKey& with, const Nonce& by, std::string_view bound,
                         const Tag& expected) {
    std::string copy = sealed;
    return open_sealed(with, by, bound, {reinterpret_cast<std::byte*>(copy.data()), copy.size()}, expected);
  };
  Tag other = tag;
  other[15] ^= 1;
  EXPECT_TRUE(opens(key, nonce, "bound", tag));
  EXPECT_FALSE(opens(SecretKey::random(), nonce, "bound", tag));
  EXPECT_FALSE(opens(key, new_nonce(), "bound", tag));
  EXPECT_FALSE(opens(key, nonce, "bounds", tag));
  EXPECT_FALSE(opens(key, nonce, "bound", other));
}

TEST(Cipher, NoncesAreNotThoseBefore) {
  std::set<Nonce> seen;
  for (int i = 0; i < 10000; ++i) seen.insert(new_nonce());
  EXPECT_EQ(seen.size(), 10000U);
}

TEST(Cipher, WrapsKeysForOneUse) {
  const SecretKey master = SecretKey::random();
  const SecretKey key = SecretKey::random();
  const std::string wrapped = wrap(key, master, "hour 1");
  EXPECT_EQ(wrapped.size(), kWrappedBytes);
  EXPECT_EQ(unwrap(wrapped, master, "hour 1"), key);
  EXPECT_FALSE(unwrap(wrapped, master, "hour 2"));
  EXPECT_FALSE(unwrap(wrapped, SecretKey::random(), "hour 1"));
  EXPECT_FALSE(unwrap(wrapped.substr(1), master, "hour 1"));
  EXPECT_NE(wrap(key, master, "hour 1"), wrapped) << "another nonce";
  for (std::size_t at = 0; at < wrapped.size(); ++at) {
    std::string other = wrapped;
    other[at] = static_cast<char>(other[at] ^ 1);
    EXPECT_FALSE(unwrap(other, master, "hour 1")) << at;
  }
}

TEST(KeyFiles, HoldBytesOrDigits) {
  const TemporaryFolder folder;
  const std::string digits = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
  const SecretKey key = key_of(folder, digits);
  for (const std::string& text : {digits, digits + "\n", digits + "\r\n"}) {
    write_secret(folder / "digits", text);
    EXPECT_EQ(SecretKey::of_file(folder / "digits"), key);
  }
}

TEST(KeyFiles, ThatAreNoneAreNamedAndNotShown) {
  const TemporaryFolder folder;
  const std::string secret = "deadbeef";
  const std::string digits(62, 'a');
  for (const std::string& text :
       {std::string(), secret, secret + digits, digits + "g0", digits + "aaa", digits + "aa\n\n",
        std::string(31, 'x'), std::string(33, 'x'), std::string(5000, 'a')}) {
    write_secret(folder / "key", text);
    try {
      SecretKey::of_file(folder / "key");
      ADD_FAILURE() << text;
    } catch (const HistoryError& error) {
      EXPECT_THAT(error.what(), HasSubstr("/key: holds neither 32 bytes nor 64 hexadecimal digits"));
      EXPECT_THAT(error.what(), Not(HasSubstr(secret)));
      EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    }
  }
  try {
    SecretKey::of_file(folder / "none");
    ADD_FAILURE();
  } catch (const HistoryError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/none: cannot open: No such file"));
  }
}

TEST(KeyFiles, ThatOthersMayReadOrChangeAreRefused) {
  const TemporaryFolder folder;
  const std::string file = folder / "key";
  key_of(folder, std::string(64, 'a'));
  for (const unsigned mode : {0666U, 0644U, 0640U, 0604U, 0620U, 0602U}) {
    std::filesystem::permissions(file, std::filesystem::perms(mode));
    try {
      SecretKey::of_file(file);
      ADD_FAILURE() << std::oct << mode << " is accepted";
    } catch (const HistoryError& error) {
      std::ostringstream octal;
      octal << std::oct << std::setw(4) << std::setfill('0') << mode;
      EXPECT_EQ(std::string(error.what()),
                file + ": has mode " + octal.str() + "; a secret key must be its owner's alone (chmod 600)");
    }
  }
  std::filesystem::permissions(file, std::filesystem::perms(0400));
  EXPECT_NO_THROW(SecretKey::of_file(file));
}

// As operators make one.
TEST(KeyFiles, OfOpenSslsOwnCommandAreTaken) {
  const TemporaryFolder folder;
  const std::string file = folder / "past.key";
  const std::string command = "umask 077; openssl rand -hex 32 > '" + file + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);  // NOLINT(concurrency-mt-unsafe)
  EXPECT_NE(SecretKey::of_file(file), SecretKey());
}

TEST(StoreFormats, KnowTheirMasterKeyAgain) {
  const std::optional<SecretKey> master = SecretKey::random();
  const std::optional<SecretKey> other = SecretKey::random();
  const auto fault = [](const std::string& text, const std::optional<SecretKey>& key) -> std::string {
    try {
      check_format(text, key, "history x");
      return "";
    } catch (const HistoryError& error) {
      return error.what();
    }
  };
  const std::string sealed = new_format(master);
  const std::string plain = new_format(std::nullopt);
  EXPECT_TRUE(is_format(sealed));
  EXPECT_EQ(fault(sealed, master), "");
  EXPECT_EQ(fault(plain, std::nullopt), "");
  EXPECT_THAT(fault(sealed, other), HasSubstr("history x: was encrypted by another master key"));
  EXPECT_THAT(fault(sealed, std::nullopt), HasSubstr("is encrypted, and no key file is named"));
  EXPECT_THAT(fault(plain, master), HasSubstr("was begun without encryption"));
  std::string changed = sealed;
  changed[30] = static_cast<char>(changed[30] ^ 1);
  EXPECT_FALSE(is_format(changed));
  EXPECT_THAT(fault(changed, master), HasSubstr("another layout"));
}

}  // namespace
}  // namespace vigil::history
