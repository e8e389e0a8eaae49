#!/bin/sh
# Asks each URL for a status of 200, for half a minute at most; ASK_SECONDS says otherwise. Ends with 1 if one has another.
#
#   ask-readyz.sh URL...
seconds=${ASK_SECONDS:-30}
ask() {
  if command -v wget >/dev/null 2>&1; then wget -q -T 3 -O /dev/null "$1"; else curl -sf -m 3 -o /dev/null "$1"; fi
}
[ $# -gt 0 ] || { echo "ask-readyz: no URL" >&2; exit 2; }
status=0
until=$(($(date +%s) + seconds))
for url; do
  while ! ask "$url" 2>/dev/null && [ "$(date +%s)" -lt "$until" ]; do sleep 1; done
  if ask "$url"; then echo "ready      $url"; else echo "not ready  $url"; status=1; fi
done
exit $status
