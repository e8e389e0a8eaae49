#include "actors/target/explain.h"

#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <utility>

namespace vigil::actors {
namespace {

std::vector<window::Answer> generate(window::AnswerGenerator& generator,
                                     std::span<const ExplainRequest> requests) {
  std::vector<window::Continuation> continuations;
  for (const ExplainRequest& request : requests) {
    if (!request.window->lease) throw std::invalid_argument("the window has left the cache");
    continuations.push_back({&request.window->lease->window(), request.rule});
  }
  auto answers = generator.generate(continuations);
  if (answers.size() != requests.size())
    throw std::logic_error("the generator returned another number of answers");
  return answers;
}

}  // namespace

Explained explain(window::AnswerGenerator& generator, const std::vector<ExplainRequest>& requests) {
  Explained result;
  result.texts.resize(requests.size());
  result.failures.resize(requests.size());
  const auto keep = [&](std::size_t index, window::Answer answer) {
    result.tokens += static_cast<std::int64_t>(answer.tokens.size());
    result.texts[index] = std::move(answer.text);
  };
  try {
    auto answers = generate(generator, requests);
    for (std::size_t i = 0; i < answers.size(); ++i) keep(i, std::move(answers[i]));
    return result;
  } catch (const window::DeviceLost&) {
    throw;
  } catch (const std::bad_alloc& error) {
    result.too_many = error.what();
    result.failures.assign(requests.size(), error.what());
    return result;
  } catch (const std::exception& error) {
    if (requests.size() == 1) {
      result.failures.front() = error.what();
      return result;
    }
  }
  for (std::size_t i = 0; i < requests.size(); ++i) {
    try {
      keep(i, std::move(generate(generator, std::span(requests).subspan(i, 1)).front()));
    } catch (const window::DeviceLost&) {
      throw;
    } catch (const std::exception& error) {
      result.failures[i] = error.what();
    }
  }
  return result;
}

}  // namespace vigil::actors
