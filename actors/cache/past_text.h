// Answers about the past as JSON, as docs/memory.md describes them for others.
#pragma once

#include <string>
#include <vector>

#include "actors/messages/clips.h"
#include "actors/messages/past.h"
#include "engine/kv/history/history_store.h"
#include "engine/kv/history/page_key.h"
#include "engine/memory/memory.h"
#include "engine/memory/question_desk.h"

namespace vigil::actors {

/// `clips`: which show its evidence; null: none is named.
std::string answer_text(const history::CameraId& camera, const PastQuestion& question,
                        const memory::PastAnswer& answer, const Clips* clips);
std::string progress_text(const memory::QuestionDesk::Progress& progress);
std::string list_text(const std::vector<memory::Memory::Summary>& cameras);

struct Verified {
  history::CameraId camera;
  history::VerifyReport report;
};
std::string verify_text(const std::vector<Verified>& cameras);

/// `is_finished`: no byte of it is left.
std::string erasure_text(const history::CameraId& camera, const history::WallRange& wall, std::size_t pages,
                         bool is_finished);

}  // namespace vigil::actors
