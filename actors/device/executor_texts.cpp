// The part of the executor's shell by which texts go to other nodes' devices, and come from them.
#include <memory>
#include <utility>

#include "actors/device/executor_actor.h"
#include "actors/messages/carried_text.h"

namespace vigil::actors {
namespace {

/// Of a window whose time has not begun: it has its answers, and nobody has called `expire` since.
base::Clock::TimePoint deadline_of(const stream::StreamDesk::Carried& text, base::Clock::TimePoint now) {
  return text.deadline.value_or(now + text.keep.value_or(kExplanationPatience));
}

}  // namespace

void executor_state::carry(const Explain& request) {
  std::optional<stream::StreamDesk::Carried> carried;
  try {
    carried = deps->engine.desk->carry(request.window, request.rule);
  } catch (const run::DeviceLost&) {
    throw;
  } catch (const std::exception& error) {
    deps->logger.error("stream: camera {}: a text stays here: {}", request.window.camera, error.what());
  }
  if (!carried) return explain(request);
  const auto own = std::make_shared<stream::StreamDesk::Carried>(*std::move(carried));
  auto text = std::make_shared<CarriedText>();
  text->ticket = request.ticket;
  const WatchPtr watch = windows->watch(request.window.camera);
  text->watch = watch ? watch->ref() : WatchRef{request.window.camera, 0};
  text->text = std::move(own->text);
  text->view = std::move(own->view);
  text->is_far = own->is_far;
  text->pages_form = own->pages_form;
  text->page_bytes = own->page_bytes;
  for (std::int32_t page = 0; page < text->view.pages; ++page)
    text->pages.push_back(own->pages.get() + static_cast<std::size_t>(page) * own->page_bytes);
  text->due = own->due;
  text->deadline = deadline_of(*own, deps->clock.now());
  text->owners.push_back(own);
  self->send(deps->elsewhere, CarriedTextPtr(std::move(text)));
  settle();
}

void executor_state::go_on(const CarriedTextPtr& text) {
  try {
    const stream::WindowId window =
        deps->engine.desk->receive(text->watch.camera, {.text = text->text,
                                                        .view = text->view,
                                                        .pages_form = text->pages_form,
                                                        .pages = text->pages,
                                                        .is_far = text->is_far,
                                                        .due = text->due,
                                                        .deadline = text->deadline});
    explanations.ask(window, 0, text->ticket);
  } catch (const run::DeviceLost&) {
    throw;
  } catch (const std::exception& error) {
    self->send<caf::message_priority::high>(answers, Explanation{text->ticket, "", error.what()});
  }
  settle();
}

}  // namespace vigil::actors
