#!/usr/bin/env bash
# A model that is not there: one line, status 1, and nothing is left on the disk.
#
#   wrong_model_test.sh VIGIL
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >config.yaml <<END
model: nowhere
alerts: {bind: "ipc://$folder/events", replay: "ipc://$folder/replay", outbox: kept}
evidence: {enabled: true, dir: evidence}
metrics: {listen: ""}
cameras:
  gate:
    url: /nowhere.mp4
    rules: [{name: person, prompt: "Is there a person?"}]
END
"$1" run --config config.yaml 2>errors
status=$?
left=$(ls | tr '\n' ' ')
lines=$(wc -l <errors)
if [ "$status" != 1 ] || [ "$left" != "config.yaml errors " ] || [ "$lines" != 1 ]; then
  echo "status $status, left: $left"
  cat errors
  exit 1
fi
