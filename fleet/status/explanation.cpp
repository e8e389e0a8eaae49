// Why a camera is where it is, in sentences. A part of fleet_picture.h.
#include "actors/status/text_parts.h"
#include "fleet/status/camera_view.h"

namespace vigil::fleet {
namespace {

using Sentences = std::vector<std::string>;

std::string age_of(base::Duration age) {
  return actors::span(base::seconds(age));
}

std::string behind(const std::string& words) {
  return words.empty() ? "." : ": " + words + '.';
}

void explain_place(const FleetPicture& picture, const CameraView& view, Sentences& told) {
  const cluster::PlannedCamera& entry = *view.place->entry;
  const std::string owner(view.place->owner);
  told.push_back("Node " + owner + " was given " + view.camera + ", with the fence " +
                 std::to_string(entry.fence) + behind(entry.why));
  if (!view.place->former.empty())
    told.push_back("Node " + std::string(view.place->former) + " goes on with it until " + owner +
                   " has frames of it.");
  const auto record = picture.standing->nodes.find(owner);
  if (record == picture.standing->nodes.end()) {
    told.push_back("Node " + owner + " is gone: its lease has ended, and " + view.camera +
                   " is to be given to another.");
  } else if (record->second.state == cluster::NodeState::draining) {
    told.push_back("Node " + owner + " drains: it hands over what it has.");
  }
}

void explain_stream(const FleetPicture& picture, const CameraView& view, Sentences& told) {
  const cluster::PlannedCamera& entry = *view.place->entry;
  if (entry.stream.empty()) {
    told.push_back("No node computes it, so that it is not watched" + behind(view.why_unplaced));
    return;
  }
  std::string apart;
  if (!entry.vision.empty() && entry.vision != entry.stream) apart += ", what it sees node " + entry.vision;
  if (!entry.generate.empty() && entry.generate != entry.stream)
    apart += ", explanations node " + entry.generate;
  told.push_back("Node " + entry.stream + " computes its windows" + apart + behind(entry.why_stream));
  if (entry.former_stream == entry.stream && picture.standing->nodes.contains(entry.former_vision))
    told.push_back("Until node " + entry.vision + " encodes for it, node " + entry.former_vision + " does.");
  else if (picture.standing->nodes.contains(entry.former_stream))
    told.push_back("Until these are full there, node " + entry.former_stream + " goes on answering.");
  if (!entry.rung.empty())
    told.push_back("There is less of it than its settings say: " +
                   (entry.why_rung.empty() ? entry.rung : entry.why_rung) + '.');
}

void explain_state(const FleetPicture& picture, const CameraView& view, Sentences& told) {
  const std::string owner(view.place->owner);
  if (view.age) {
    told.push_back("Node " + owner + " says that it is " + view.state + ", since " + age_of(*view.age) +
                   behind(view.reason));
    return;
  }
  const auto node = picture.nodes.find(owner);
  const std::string fault =
      node == picture.nodes.end() || node->second.answer ? view.reason : node->second.fault;
  told.push_back("Whether it delivers is not known" + behind(fault));
}

void explain_planning(const FleetPicture& picture, Sentences& told) {
  const std::string& planner = picture.standing->planner;
  if (!picture.registry_fault.empty()) {
    told.push_back("The registry does not tell anything, so that nothing moves: " + picture.registry_fault +
                   '.');
    told.push_back(picture.plan_age ? "It told who has what " + age_of(*picture.plan_age) +
                                          " ago; what nodes say that they have is newer."
                                    : std::string("Who has what is known of the nodes that answer alone."));
  } else if (planner.empty()) {
    told.emplace_back("No node plans, so that nothing moves until one does.");
  }
}

}  // namespace

Sentences explain(const FleetPicture& picture, const std::string& camera) {
  Sentences told;
  const CameraView view = view_of(picture, camera);
  if (view.place != nullptr) {
    explain_place(picture, view, told);
    explain_stream(picture, view, told);
    explain_state(picture, view, told);
  } else if (knows(picture, camera)) {
    told.push_back("No node has " + camera + ", so that it is not watched" + behind(view.why_unplaced));
  } else {
    told.push_back("No node has " + camera + ", and the configuration of node " +
                   picture.standing->record.name + " does not have it either, or does not enable it.");
  }
  explain_planning(picture, told);
  return told;
}

}  // namespace vigil::fleet
