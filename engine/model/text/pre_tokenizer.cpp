#define PCRE2_CODE_UNIT_WIDTH 8
#include "engine/model/text/pre_tokenizer.h"

#include <array>
#include <cstdint>
#include <utility>

#include <pcre2.h>

#include "engine/model/files/error.h"

namespace vigil::model {
namespace {

/// What ByteLevel splits by where it is told to use its own expression (GPT-2's).
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Unicode's White_Space, which \s means to the tokenizers library. PCRE2's own \s adds U+180E.
constexpr std::string_view kSpaces = R"(\t-\r\x{85}\p{Z})";

/// A bound that no text reaches with a sane pattern; it ends patterns that explode.
constexpr std::uint32_t kMatchLimit = 20'000'000;

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

std::string reason_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

/// Writes \s and \S out as White_Space.
std::string with_unicode_spaces(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      if (escaped == 's') {
        out.append(in_class ? "" : "[").append(kSpaces).append(in_class ? "" : "]");
      } else if (escaped == 'S' && !in_class) {
        out.append("[^").append(kSpaces).append("]");
      } else {
        out.append({c, escaped});
      }
      continue;
    }
    if (c == '[' && !in_class) {
      in_class = true;
      out += c;
      // A bracket that comes first closes nothing.
      if (i + 1 < pattern.size() && pattern[i + 1] == '^') out += pattern[++i];
      if (i + 1 < pattern.size() && pattern[i + 1] == ']') out += pattern[++i];
      continue;
    }
    if (in_class && pattern.substr(i).starts_with("[:")) {
      const std::size_t end = pattern.find(":]", i);
      if (end != std::string_view::npos) {
        out.append(pattern.substr(i, end + 2 - i));
        i = end + 1;
        continue;
      }
    }
    if (c == ']') in_class = false;
    out += c;
  }
  return out;
}

}  // namespace

struct PreTokenizer::Pattern {
  std::unique_ptr<pcre2_code, FreeCode> code;
  std::unique_ptr<pcre2_match_context, FreeContext> context;
  std::string file;

  Pattern(std::string_view pattern, bool literal, std::string file_name) : file(std::move(file_name)) {
    const std::string text = literal ? std::string(pattern) : with_unicode_spaces(pattern);
    const std::uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C);
    int error = 0;
    PCRE2_SIZE offset = 0;
    code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), options, &error, &offset,
                             nullptr));
    if (code == nullptr) {
      throw ModelError(file + ": pre_tokenizer: the pattern " + in_quotes(pattern) +
                       " does not compile: " + reason_of(error) + " at offset " + std::to_string(offset));
    }
    // Where this processor has no just-in-time compiler the interpreter matches the same.
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
    context.reset(pcre2_match_context_create(nullptr));
    pcre2_set_match_limit(context.get(), kMatchLimit);
  }

  /// The next match at or after `from` as offsets; false if there is none.
  bool match(std::string_view text, std::size_t from, pcre2_match_data* data) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    int result = pcre2_match(code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK, data, context.get());
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
      result = pcre2_match(code.get(), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data,
                           context.get());
    }
    if (result == PCRE2_ERROR_NOMATCH) return false;
    if (result < 0) {
      throw ModelError(file + ": pre_tokenizer: matching failed at byte " + std::to_string(from) + " of " +
                       std::to_string(text.size()) + ": " + reason_of(result));
    }
    return true;
  }
};

PreTokenizer::PreTokenizer(const Json& json, const std::string& file) {
  const JsonObject root(json, file, "pre_tokenizer");
  if (root.string("type") == "Sequence") {
    const Json& stages = root.at("pretokenizers");
    if (!stages.is_array() || stages.size() > 32)
      root.fail("pretokenizers", "a list of at most 32 was expected");
    for (const Json& stage : stages) read_stage(JsonObject(stage, file, "pre_tokenizer.pretokenizers"));
  } else {
    read_stage(root);
  }
  if (!bytes_) root.fail("type", "only byte-level tokenizers are supported, no ByteLevel stage is here");
}

PreTokenizer::~PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;

void PreTokenizer::read_stage(const JsonObject& stage) {
  const std::string type = stage.string("type");
  if (bytes_) stage.fail("type", "no stage may follow ByteLevel, this is " + in_quotes(type));
  if (type == "Split") {
    const std::string behavior = stage.string("behavior");
    if (behavior != "Isolated") {
      stage.fail("behavior", in_quotes(behavior) + " is not supported, Isolated is");
    }
    const JsonObject pattern = stage.object("pattern");
    const bool literal = pattern.has("String");
    patterns_.emplace_back(pattern.string(literal ? "String" : "Regex"), literal, stage.file());
  } else if (type == "ByteLevel") {
    if (stage.boolean("add_prefix_space", true)) stage.fail("add_prefix_space", "true is not supported");
    if (stage.boolean("use_regex", true)) patterns_.emplace_back(kByteLevelPattern, false, stage.file());
    bytes_ = true;
  } else {
    stage.fail("type", in_quotes(type) + " is not supported; Split, ByteLevel and Sequence are");
  }
}

void PreTokenizer::split(std::string_view text, const std::function<void(std::string_view)>& word) const {
  if (!text.empty()) split_from(0, text, word);
}

void PreTokenizer::split_from(std::size_t stage, std::string_view text,
                              const std::function<void(std::string_view)>& word) const {
  if (stage == patterns_.size()) {
    word(text);
    return;
  }
  const Pattern& pattern = patterns_[stage];
  const std::unique_ptr<pcre2_match_data, FreeMatch> data(
      pcre2_match_data_create_from_pattern(pattern.code.get(), nullptr));
  std::size_t done = 0;
  std::size_t from = 0;
  while (from <= text.size() && pattern.match(text, from, data.get())) {
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data.get());
    const std::size_t begin = offsets[0];
    const std::size_t end = offsets[1];
    if (begin > done) split_from(stage + 1, text.substr(done, begin - done), word);
    if (end > begin) split_from(stage + 1, text.substr(begin, end - begin), word);
    done = end;
    from = end;
    if (end > begin) continue;
    // An empty match cuts without taking anything; the search goes on behind the next character.
    do {
      ++from;
    } while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0U) == 0x80U);
  }
  if (done < text.size()) split_from(stage + 1, text.substr(done), word);
}

}  // namespace vigil::model
