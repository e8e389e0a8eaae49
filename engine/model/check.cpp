#include "engine/model/check.h"

#include <array>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "engine/model/expected_tensors.h"
#include "engine/model/families/family.h"
#include "engine/model/files/error.h"
#include "engine/model/files/weights.h"
#include "engine/model/language/generation.h"
#include "engine/model/text/tokenizer.h"
#include "engine/model/vision/preprocess.h"

namespace vigil::model {
namespace {

/// Pictures of cameras for which the cost of a window is told.
constexpr std::array<PictureSize, 3> kSources = {{{448, 448}, {1280, 720}, {1920, 1080}}};

class Check {
 public:
  explicit Check(const std::filesystem::path& folder) : folder_(folder) { report_.folder = folder.string(); }

  FolderReport run() {
    std::error_code error;
    if (!std::filesystem::is_directory(folder_, error)) {
      part([this] { is_there(folder_); });
      if (report_.problems.empty()) report_.problems.push_back(report_.folder + ": no such folder");
      return std::move(report_);
    }
    part([this] { report_.config = read_config(folder_); });
    if (report_.config) count_parameters();
    part([this] { look_at_weights(); });
    part([this] { look_at_text(); });
    part([this] { look_at_generation(); });
    part([this] { report_.calibration = read_calibration(folder_); });
    part([this] { look_at_preprocessing(); });
    return std::move(report_);
  }

 private:
  void part(const std::function<void()>& look) {
    try {
      look();
    } catch (const ModelError& error) {
      report_.problems.emplace_back(error.what());
    }
  }

  void count_parameters() {
    const TextConfig& text = report_.config->text;
    for (const ExpectedTensor& tensor : expected_vision_tensors(report_.config->vision)) {
      report_.vision_parameters += tensor.elements();
    }
    for (const ExpectedTensor& tensor : expected_text_tensors(text))
      report_.text_parameters += tensor.elements();
    constexpr std::uint64_t kBytes = 2;
    report_.kv_bytes_per_token = 2 * kBytes * static_cast<std::uint64_t>(text.num_hidden_layers) *
                                 static_cast<std::uint64_t>(text.num_key_value_heads) *
                                 static_cast<std::uint64_t>(text.head_dim);
  }

  void look_at_weights() {
    const auto prefixes =
        report_.config ? family_of(*report_.config).prefixes : std::span<const NamePrefix>();
    const Weights weights = Weights::open(folder_, prefixes);
    for (const auto& file : weights.files()) {
      const std::filesystem::path path = file->name();
      report_.files.push_back({path.filename().string(), std::filesystem::file_size(path)});
      for (const auto& [name, tensor] : file->tensors())
        ++report_.tensor_types[kernels::name_of(tensor.dtype)];
      for (const auto& [name, type] : file->other_types()) ++report_.tensor_types[type];
    }
    report_.tensors = weights.count();
    report_.weights_bytes = weights.bytes();
    if (!report_.config) return;
    TensorFindings findings = check_tensors(weights, *report_.config);
    for (std::string& problem : findings.problems) report_.problems.push_back(std::move(problem));
    if (!findings.unused.empty()) {
      const std::string more =
          findings.unused.size() > 1 ? " and " + std::to_string(findings.unused.size() - 1) + " more" : "";
      report_.warnings.push_back(report_.folder + ": tensors that nothing uses: " + findings.unused.front() +
                                 more);
    }
  }

  void look_at_text() {
    // Which template is the published one, a family knows.
    const ChatFormat format = report_.config ? family_of(*report_.config).chat : ChatFormat{};
    const ChatTemplate chat = read_chat_template(folder_, format);
    if (report_.config && !chat.warning().empty()) report_.warnings.push_back(chat.warning());
    const Tokenizer tokenizer = Tokenizer::open(folder_);
    report_.tokenizer_ids = tokenizer.id_limit();
    if (!report_.config) return;
    const ModelConfig& config = *report_.config;
    tokenizer.require_ids_below(config.text.vocab_size);
    require_chat_tokens(tokenizer, format, config);
  }

  void look_at_generation() {
    const GenerationConfig generation = read_generation_config(folder_);
    report_.end_token_ids = generation.end_token_ids;
    if (generation.end_token_ids.empty()) {
      report_.warnings.push_back(report_.folder + ": no end token: answers run to their longest");
    }
    for (const std::int32_t id : generation.end_token_ids) {
      if (report_.config && id >= report_.config->text.vocab_size) {
        report_.warnings.push_back(report_.folder + ": the end token " + std::to_string(id) +
                                   " is beyond vocab_size " +
                                   std::to_string(report_.config->text.vocab_size));
      }
    }
  }

  void look_at_preprocessing() {
    const PreprocessConfig config = read_preprocess_config(folder_);
    if (!report_.config) return;
    const Preprocessor image(config.image, report_.config->vision);
    const Preprocessor video(config.video, report_.config->vision);
    const double patches =
        std::ceil(report_.window_seconds * report_.frames_per_second / video.frames_per_patch());
    for (const PictureSize source : kSources) {
      try {
        const PictureSize frame = video.frame_size(source);
        const std::int64_t tokens = video.tokens(frame);
        report_.windows.push_back({source, frame, tokens, tokens * static_cast<std::int64_t>(patches)});
      } catch (const std::invalid_argument& error) {
        report_.warnings.push_back(report_.folder + ": " + error.what());
      }
    }
  }

  std::filesystem::path folder_;
  FolderReport report_;
};

}  // namespace

FolderReport check_folder(const std::filesystem::path& folder) {
  return Check(folder).run();
}

}  // namespace vigil::model
