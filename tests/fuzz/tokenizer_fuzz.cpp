// Two readers by the first byte. 'j': any bytes as tokenizer.json, and a text through what loads. Else: any
// bytes as a text through the tokenizer of tests/golden, where decoding and encoding again must come to the
// same ids.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "engine/model/files/error.h"
#include "engine/model/text/tokenizer.h"

namespace {

using namespace vigil::model;

void check_line(const ModelError& error) {
  if (std::strchr(error.what(), '\n') != nullptr || std::strlen(error.what()) > 2000) std::abort();
}

void fuzz_file(std::string_view json) {
  const Tokenizer tokenizer = Tokenizer::parse(json, "fuzz");
  const auto ids = tokenizer.encode("It's a person's  test.\n\n\t人 e\xCC\x81 <|x|> \xF0\x9F\x9A\x97 12");
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= tokenizer.id_limit()) std::abort();
  }
  (void)tokenizer.decode(ids, true);
}

void fuzz_text(std::string_view text) {
  static const Tokenizer tokenizer = Tokenizer::open(VIGIL_SOURCE_DIR "/tests/golden/tokenizer");
  const auto ids = tokenizer.encode(text);
  const std::string decoded = tokenizer.decode(ids, false);
  if (tokenizer.encode(decoded) != ids) std::abort();
  StreamDecoder stream(tokenizer, false);
  std::string streamed;
  for (const std::int32_t id : ids) streamed += stream.push(id);
  if (streamed + stream.finish() != decoded) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] == 'j') {
      fuzz_file(rest);
    } else {
      fuzz_text(rest);
    }
  } catch (const ModelError& error) {
    check_line(error);
  }
  return 0;
}
