"""When each alert of helm/vigil/rules/alerts.yaml fires and when it does not, as series of a sample a minute (Prometheus' notation for its unit tests).

A case is (series, minute, expected): what is told in that minute for the first time, as pairs of the labels that it has beside those of the node,
and its summary; or nothing, if it is not told in that minute.
"""

# Of every series that does not say otherwise, and of what is told of it.
NODE = {"instance": "n1:9464", "job": "vigil"}


def flat(value, minutes=60):
    return f"{value}+0x{minutes}"


def rising(step, minutes=60, start=0):
    return f"{start}+{step}x{minutes}"


def then(*parts):
    """One after the other."""
    return " ".join(parts)


def one(summary, **labels):
    return [({**NODE, **labels}, summary)]


def fleet(summary, **labels):
    """What is told of all nodes together."""
    return [(labels, summary)]


GATE = 'camera="gate",tenant="north"'
OF_GATE = {"camera": "gate", "tenant": "north"}


def cameras(up, down):
    return {'vigil_cameras{state="up"}': flat(up), 'vigil_cameras{state="down"}': flat(down), 'vigil_cameras{state="stalled"}': flat(0),
            'vigil_cameras{state="connecting"}': flat(0)}


def windows(**rates):
    return {f'vigil_windows_total{{outcome="{outcome}"}}': rising(rate) for outcome, rate in {"answered": 0, "overtaken": 0, "failed": 0, **rates}.items()}


def audits(agree, differ):
    of = f'{GATE},rule="person"'
    return {f'vigil_audited_answers_total{{agrees="true",{of}}}': then(flat(0, 30), rising(agree, 20)),
            f'vigil_audited_answers_total{{agrees="false",{of}}}': then(flat(0, 30), rising(differ, 20))}


def clips(ready, failed):
    return {'vigil_evidence_clips_total{state="ready"}': rising(ready), 'vigil_evidence_clips_total{state="failed"}': rising(failed)}


def pages(unwritten=0, **outcomes):
    """So many more a minute."""
    return {"vigil_memory_unwritten_pages_total": rising(unwritten), **{f'vigil_memory_pages_total{{outcome="{outcome}"}}': rising(step) for outcome, step in outcomes.items()}}


def latencies(metric, fast, slow, below="0.1", above="20"):
    """So many a minute below and above."""
    return {f'{metric}_bucket{{le="{below}"}}': rising(fast), f'{metric}_bucket{{le="{above}"}}': rising(fast + slow), f'{metric}_bucket{{le="+Inf"}}': rising(fast + slow)}


def members(**planners):
    return {f'vigil_fleet_planner{{instance="{name}"}}': values for name, values in planners.items()}


CASES = {
    "VigilAbsent": [
        ({"up": flat(1)}, 5, [({}, "No Vigil is scraped at all")]),
        ({"vigil_build_info": flat(1)}, 10, []),
        # What was there is gone for less than five minutes.
        ({"vigil_build_info": then(flat(1, 5), "stale")}, 10, []),
    ],
    "VigilTargetDown": [
        ({"up": then(flat(1, 5), flat(0, 30)), "vigil_build_info": then(flat(1, 5), "stale")}, 8, one("n1:9464 does not answer")),
        ({"up": then(flat(1, 5), flat(0, 30)), "vigil_build_info": then(flat(1, 5), "stale")}, 7, []),
        ({"up": flat(1), "vigil_build_info": flat(1)}, 10, []),
        # Somebody else's.
        ({"up": flat(0)}, 10, []),
    ],
    "VigilRestarts": [
        ({"process_start_time_seconds": "100+0x5 500+0x5 900+0x5 1300+0x30", "vigil_build_info": flat(1)}, 18, one("n1:9464 started 3 times within 30 minutes")),
        ({"process_start_time_seconds": "100+0x5 500+0x5 900+0x30", "vigil_build_info": flat(1)}, 25, []),
        ({"process_start_time_seconds": "100+0x5 500+0x5 900+0x5 1300+0x30"}, 25, []),
    ],
    "VigilFileDescriptors": [
        ({"process_open_fds": flat(850), "process_max_fds": flat(1000), "vigil_build_info": flat(1)}, 10, one("n1:9464 has 85% of its file descriptors open")),
        ({"process_open_fds": flat(790), "process_max_fds": flat(1000), "vigil_build_info": flat(1)}, 15, []),
        ({"process_open_fds": flat(850), "process_max_fds": flat(1000)}, 15, []),
    ],
    "VigilConfigRefused": [
        ({"vigil_config_last_reload_success": then(flat(1, 5), flat(0))}, 7, one("n1:9464 refused the last change of its configuration")),
        ({"vigil_config_last_reload_success": flat(1)}, 10, []),
    ],
    "VigilCameraDown": [
        ({f"vigil_camera_up{{{GATE}}}": then(flat(1, 5), flat(0))}, 11, one("Camera gate delivers no frames (n1:9464)", **OF_GATE)),
        ({f"vigil_camera_up{{{GATE}}}": then(flat(1, 5), flat(0))}, 10, []),
        ({f"vigil_camera_up{{{GATE}}}": flat(1), **cameras(1, 1)}, 15, []),
        # Without series of cameras.
        (cameras(8, 2), 5, one("2 cameras deliver no frames (n1:9464)")),
        (cameras(8, 0), 15, []),
    ],
    "VigilManyCamerasDown": [
        (cameras(7, 3), 3, one("30% of the cameras of n1:9464 deliver no frames")),
        (cameras(37, 3), 10, []),
        # One of three, and two of two.
        (cameras(2, 1), 10, []),
        (cameras(0, 2), 10, []),
    ],
    "VigilCameraFlapping": [
        ({f"vigil_camera_reconnects_total{{{GATE}}}": rising(0.5), f"vigil_camera_up{{{GATE}}}": "1 1 1 0 " * 15}, 11, one("Camera gate was lost again and again (n1:9464)", **OF_GATE)),
        ({f"vigil_camera_reconnects_total{{{GATE}}}": rising(0.1), f"vigil_camera_up{{{GATE}}}": "1 1 1 0 " * 15}, 40, []),
        # It is down, which is another alert.
        ({f"vigil_camera_reconnects_total{{{GATE}}}": rising(0.5), f"vigil_camera_up{{{GATE}}}": "1 0 0 " * 20}, 40, []),
        ({f"vigil_camera_reconnects_total{{{GATE}}}": rising(2), f"vigil_camera_up{{{GATE}}}": flat(0)}, 40, []),
    ],
    "VigilCameraSilent": [
        ({f"vigil_camera_last_frame_timestamp_seconds{{{GATE}}}": flat(300), f"vigil_camera_up{{{GATE}}}": flat(1)}, 10,
         one("Camera gate is up, and its last frame is 5m 0s old (n1:9464)", **OF_GATE)),
        ({f"vigil_camera_last_frame_timestamp_seconds{{{GATE}}}": rising(60, start=-90), f"vigil_camera_up{{{GATE}}}": flat(1)}, 10, []),
        ({f"vigil_camera_last_frame_timestamp_seconds{{{GATE}}}": flat(300), f"vigil_camera_up{{{GATE}}}": flat(0)}, 10, []),
    ],
    "VigilCameraDamaged": [
        ({f"vigil_camera_damaged_packets_total{{{GATE}}}": rising(60)}, 16, one("Packets of camera gate cannot be decoded (n1:9464)", **OF_GATE)),
        ({f"vigil_camera_damaged_packets_total{{{GATE}}}": rising(20)}, 25, []),
    ],
    "VigilRecordingLost": [
        ({f"vigil_camera_recording{{{GATE}}}": flat(0)}, 10, one("The recorded input of camera gate delivers nothing (n1:9464)", **OF_GATE)),
        ({f"vigil_camera_recording{{{GATE}}}": flat(1)}, 15, []),
    ],
    "VigilCameraForgets": [
        ({f"vigil_camera_forgotten_tokens_total{{{GATE}}}": rising(10)}, 31, one("Windows of camera gate do not fit its budget (n1:9464)", **OF_GATE)),
        ({f"vigil_camera_forgotten_tokens_total{{{GATE}}}": then(rising(10, 10), flat(100, 50))}, 40, []),
    ],
    "VigilAnswersDiffer": [
        (audits(1.6, 0.4), 42, one("Pruning changes 20% of the answers of rule person of camera gate", rule="person", **OF_GATE)),
        (audits(1.9, 0.1), 51, []),
        # Too few to say so.
        (audits(0.4, 0.1), 51, []),
    ],
    "VigilFramesDropped": [
        ({f'vigil_frames_dropped_total{{{GATE},reason="no_credit"}}': rising(12), f"vigil_frames_total{{{GATE}}}": rising(120)}, 11, one("n1:9464 drops 10% of its frames")),
        ({f'vigil_frames_dropped_total{{{GATE},reason="no_credit"}}': rising(3), f"vigil_frames_total{{{GATE}}}": rising(120)}, 25, []),
        ({f'vigil_frames_dropped_total{{{GATE},reason="no_credit"}}': flat(0), f"vigil_frames_total{{{GATE}}}": flat(0)}, 25, []),
    ],
    "VigilNothingAnswered": [
        ({**windows(answered=0, failed=3), **cameras(2, 0)}, 6, fleet("No window was answered for 15 minutes, and cameras are up")),
        ({**windows(answered=1), **cameras(2, 0)}, 25, []),
        ({**windows(answered=0), **cameras(0, 2)}, 25, []),
        # Cameras are read by one node, and windows answered by another.
        ({'vigil_windows_total{outcome="answered"}': flat(0), 'vigil_windows_total{instance="n2:9464",outcome="answered"}': rising(5), **cameras(2, 0)}, 25, []),
    ],
    "VigilWindowsOvertaken": [
        (windows(answered=90, overtaken=10), 11, one("n1:9464 skips 10% of its windows")),
        (windows(answered=97, overtaken=3), 25, []),
    ],
    "VigilWindowsFailing": [
        (windows(answered=98, failed=1, out_of_memory=1), 6, one("2% of the windows of n1:9464 fail")),
        (windows(answered=199, failed=1), 20, []),
        (windows(answered=95, overtaken=5), 20, []),
    ],
    "VigilWindowsLate": [
        (latencies("vigil_window_latency_seconds", 0, 100, "10"), 11, one("Answers of n1:9464 come 19.5s after the frame (95th percentile)")),
        (latencies("vigil_window_latency_seconds", 100, 1, "10"), 25, []),
    ],
    "VigilDeviceDown": [
        ({'vigil_device_up{device="cuda:0"}': then(flat(1, 5), flat(0))}, 7, one("Device cuda:0 of n1:9464 computes nothing", device="cuda:0")),
        ({'vigil_device_up{device="cuda:0"}': flat(1)}, 8, []),
    ],
    "VigilDeviceFailing": [
        ({'vigil_device_failures_total{device="cuda:0"}': "0+0x5 1+0x5 2+0x5 3+0x50"}, 18, one("Device cuda:0 of n1:9464 failed several times within an hour", device="cuda:0")),
        ({'vigil_device_failures_total{device="cuda:0"}': "0+0x5 1+0x100"}, 40, []),
    ],
    "VigilDeviceBehind": [
        ({'vigil_device_behind{device="cuda:0"}': "1+0x10 0 1+0x50"}, 5, one("Device cuda:0 of n1:9464 is behind with its work", device="cuda:0")),
        ({'vigil_device_behind{device="cuda:0"}': "1 0 " * 30}, 30, []),
    ],
    "VigilKvCacheTooSmall": [
        ({'vigil_kv_left_tokens_total{reason="evicted"}': rising(20), 'vigil_kv_left_tokens_total{reason="slid"}': rising(80),
          'vigil_kv_left_tokens_total{reason="closed"}': rising(900)}, 16,
         one("n1:9464 loses 20% of what its cameras keep in the KV cache")),
        ({'vigil_kv_left_tokens_total{reason="evicted"}': rising(5), 'vigil_kv_left_tokens_total{reason="slid"}': rising(95)}, 40, []),
        ({'vigil_kv_left_tokens_total{reason="closed"}': rising(50), 'vigil_kv_left_tokens_total{reason="slid"}': rising(95)}, 40, []),
    ],
    "VigilOutboxInMemory": [
        ({"vigil_outbox_in_memory": then(flat(0, 5), flat(1))}, 7, one("n1:9464 keeps its events in memory alone")),
        ({"vigil_outbox_in_memory": flat(0)}, 8, []),
    ],
    "VigilOutboxFailing": [
        ({"vigil_outbox_failures_total": then(flat(0, 5), flat(1))}, 6, one("n1:9464 cannot write to its outbox")),
        ({"vigil_outbox_failures_total": then(flat(0, 5), flat(1))}, 18, []),
    ],
    "VigilEventsWait": [
        ({"vigil_outbox_pending": flat(150)}, 1, one("150 events of n1:9464 or more have waited for five minutes")),
        ({"vigil_outbox_pending": "150 150 90 " * 10}, 12, []),
    ],
    "VigilEventsLost": [
        ({'vigil_messages_dropped_total{reason="backlog_full",socket="outbox"}': then(flat(0, 5), flat(7))}, 6, one("n1:9464 has lost events", reason="backlog_full", socket="outbox")),
        ({'vigil_messages_dropped_total{reason="backlog_full",socket="outbox"}': flat(7), 'vigil_messages_dropped_total{reason="slow_subscriber",socket="events"}': rising(1)}, 10, []),
    ],
    "VigilOutboxReplaced": [
        # At the start, before the first scrape; an hour later it is told no more.
        ({'vigil_outbox_replaced_total{reason="missing"}': flat(1, 90), "process_start_time_seconds": flat(0, 90)}, 0,
         one("The outbox of n1:9464 has another identity (missing)", reason="missing")),
        ({'vigil_outbox_replaced_total{reason="missing"}': flat(1, 90), "process_start_time_seconds": flat(0, 90)}, 60, []),
        # Prometheus saw it only 50 minutes later.
        ({'vigil_outbox_replaced_total{reason="missing"}': then("_x50", flat(1, 90)), "process_start_time_seconds": flat(0, 90)}, 50,
         one("The outbox of n1:9464 has another identity (missing)", reason="missing")),
        # While it runs.
        ({'vigil_outbox_replaced_total{reason="behind"}': then(flat(0, 70), flat(1)), "process_start_time_seconds": flat(0, 90)}, 71,
         one("The outbox of n1:9464 has another identity (behind)", reason="behind")),
        ({'vigil_outbox_replaced_total{reason="behind"}': flat(0), "process_start_time_seconds": flat(0)}, 10, []),
    ],
    "VigilSubscriberSlow": [
        ({'vigil_messages_dropped_total{reason="slow_subscriber",socket="events"}': then(flat(0, 5), flat(1))}, 6,
         one("A subscriber of n1:9464 does not keep up and misses events", reason="slow_subscriber", socket="events")),
        ({'vigil_messages_dropped_total{reason="slow_subscriber",socket="events"}': flat(3), 'vigil_messages_dropped_total{reason="backlog_full",socket="outbox"}': rising(1)}, 10, []),
    ],
    "VigilConnectionsRefused": [
        ({'vigil_connections_refused_total{listener="events",reason="handshake"}': rising(2)}, 11,
         one("n1:9464 turns connections away (events: handshake)", listener="events", reason="handshake")),
        ({'vigil_connections_refused_total{listener="events",reason="handshake"}': rising(1)}, 20, []),
    ],
    "VigilEvidenceFailing": [
        (clips(0.1, 0.1), 30, one("50% of the clips of n1:9464 fail")),
        (clips(9, 1), 30, []),
        (clips(0.1, 0.04), 50, []),
    ],
    "VigilMemoryNotWritten": [
        ({"vigil_memory_write_failures_total": then(flat(0, 5), flat(2))}, 6, one("n1:9464 cannot write down what its cameras remember")),
        ({"vigil_memory_write_failures_total": flat(2)}, 20, []),
    ],
    "VigilMemoryBehind": [
        (pages(kept=9, late=1), 11, one("n1:9464 loses what its cameras remember: its disk or its memory is behind")),
        # A disk that hangs: the host keeps them all, for a while.
        (pages(kept=10, late=0, unwritten=10), 11, one("n1:9464 loses what its cameras remember: its disk or its memory is behind")),
        (pages(kept=99, late=1), 45, []),
        # What is kept no longer than it was to be is no fault.
        (pages(kept=9, late=0, evicted=9), 45, []),
        (pages(kept=0, late=0), 45, []),
    ],
    "VigilRateCapReached": [
        ({'vigil_alerts_held_total{reason="rate_cap"}': then(flat(0, 5), flat(2))}, 6, one("A rule of n1:9464 reached its max_per_hour", reason="rate_cap")),
        ({'vigil_alerts_held_total{reason="rate_cap"}': flat(2), 'vigil_alerts_held_total{reason="cooldown"}': rising(2)}, 10, []),
    ],
    "VigilNodeCutOff": [
        ({"vigil_fleet_member": then(flat(1, 5), flat(0))}, 7, one("n1:9464 is no member of its fleet")),
        ({"vigil_fleet_member": flat(1)}, 8, []),
    ],
    "VigilNotOnePlanner": [
        (members(a=flat(0), b=flat(0)), 2, fleet("0 nodes plan, in place of one")),
        (members(a=flat(1), b=flat(1)), 2, fleet("2 nodes plan, in place of one")),
        (members(a=flat(0), b=flat(1)), 5, []),
        # It goes from one to the other.
        (members(a=then(flat(1, 3), flat(0)), b=then(flat(0, 4), flat(1))), 5, []),
        # Two fleets.
        ({'vigil_fleet_planner{namespace="a"}': flat(1), 'vigil_fleet_planner{namespace="b"}': flat(1)}, 5, []),
    ],
    "VigilRegistryDown": [
        ({'vigil_fleet_registry_up{instance="a"}': flat(0), 'vigil_fleet_registry_up{instance="b"}': flat(0), 'vigil_fleet_registry_up{instance="c"}': flat(1)}, 1,
         fleet("The registry does not answer 2 nodes")),
        ({'vigil_fleet_registry_up{instance="a"}': flat(1)}, 5, []),
    ],
    "VigilRegistrySlow": [
        (latencies("vigil_fleet_registry_seconds", 50, 50, "0.5", "1"), 11, one("The registry takes 990ms to answer n1:9464 (99th percentile)")),
        (latencies("vigil_fleet_registry_seconds", 100, 0, "0.5", "1"), 25, []),
    ],
    "VigilNodeStuck": [
        ({'vigil_fleet_nodes{state="draining"}': flat(1), 'vigil_fleet_nodes{state="ready"}': flat(4)}, 30, fleet("1 nodes have been draining for half an hour", state="draining")),
        ({'vigil_fleet_nodes{state="draining"}': then(flat(0, 20), flat(1)), 'vigil_fleet_nodes{state="ready"}': flat(4)}, 40, []),
    ],
    "VigilCamerasUnplaced": [
        ({'vigil_fleet_cameras{state="unplaced"}': flat(12), 'vigil_fleet_cameras{state="owned"}': flat(30)}, 2, fleet("12 cameras have no node")),
        ({'vigil_fleet_cameras{state="unplaced"}': flat(0), 'vigil_fleet_cameras{state="owned"}': flat(30)}, 5, []),
    ],
    "VigilCamerasDegraded": [
        ({'vigil_fleet_cameras{state="degraded"}': flat(7), 'vigil_fleet_cameras{state="owned"}': flat(30)}, 15,
         fleet("The fleet has no room for all of 7 cameras")),
        # A node that is started anew.
        ({'vigil_fleet_cameras{state="degraded"}': then(flat(7, 5), flat(0)), 'vigil_fleet_cameras{state="owned"}': flat(30)}, 20, []),
    ],
    "VigilHandoverStuck": [
        ({'vigil_fleet_cameras{state="handing_over"}': flat(3)}, 5, fleet("3 cameras or more have been on their way for 15 minutes")),
        # They come and go.
        ({'vigil_fleet_cameras{state="handing_over"}': "3 3 3 3 0 " * 10, 'vigil_fleet_cameras{state="owned"}': flat(30)}, 25, []),
    ],
    "VigilConfigDiffers": [
        ({'vigil_fleet_config_info{instance="a",version="1f"}': flat(1), 'vigil_fleet_config_info{instance="b",version="2e"}': flat(1)}, 15, fleet("Nodes run by 2 versions of the configuration")),
        ({'vigil_fleet_config_info{instance="a",version="1f"}': flat(1), 'vigil_fleet_config_info{instance="b",version="1f"}': flat(1)}, 20, []),
    ],
    "VigilLinkDown": [
        ({'vigil_link_up{node="n2"}': then(flat(1, 5), flat(0))}, 8, one("n1:9464 has no link to n2", node="n2")),
        ({'vigil_link_up{node="n2"}': flat(1)}, 10, []),
    ],
    "VigilLinkResets": [
        ({'vigil_link_resets_total{direction="outgoing",node="n2",reason="silence"}': rising(0.4)}, 8,
         one("The link of n1:9464 and n2 broke several times (silence)", direction="outgoing", node="n2", reason="silence")),
        ({'vigil_link_resets_total{direction="outgoing",node="n2",reason="silence"}': rising(0.15)}, 20, []),
        # A node that is started again and again is another alert.
        ({'vigil_link_resets_total{direction="outgoing",node="n2",reason="closed"}': rising(1)}, 20, []),
    ],
    "VigilGatewayBehind": [
        ({"vigil_gateway_behind_events": flat(150)}, 1, one("Gateway n1:9464 lacks 150 events or more for five minutes")),
        ({"vigil_gateway_behind_events": "150 90 " * 10}, 8, []),
    ],
    "VigilGatewayRefuses": [
        ({'vigil_gateway_events_total{outcome="refused"}': then(flat(0, 5), flat(4))}, 6, one("Gateway n1:9464 refuses events", outcome="refused")),
        ({'vigil_gateway_events_total{outcome="refused"}': flat(4), 'vigil_gateway_events_total{outcome="duplicate"}': rising(4)}, 10, []),
    ],
    "VigilEventsHeld": [
        ({"vigil_events_held": then(flat(0, 5), flat(1))}, 7, one("Events of n1:9464 wait for a gateway that does not answer")),
        # A gateway that is gone holds them up until its lease has ended.
        ({"vigil_events_held": "1 0 0 0 0 " * 10}, 20, []),
    ],
    "VigilErasureWaits": [
        ({"vigil_past_erasures_waiting": then(flat(0, 5), flat(2))}, 21, fleet("2 erasures wait for a node")),
        ({"vigil_past_erasures_waiting": then(flat(0, 5), flat(2, 10), flat(0))}, 21, []),
    ],
    "VigilGatewayGap": [
        ({"vigil_gateway_gaps_total": then(flat(0, 5), flat(2))}, 6, one("Gateway n1:9464 goes on behind events that nobody has any more")),
        ({"vigil_gateway_gaps_total": flat(2)}, 10, []),
    ],
}
