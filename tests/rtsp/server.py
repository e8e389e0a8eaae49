#!/usr/bin/env python3
"""GStreamer's RTSP server with streams that behave badly on demand.

  server.py [--port N] [--user NAME --password TEXT] [--serve NAME=STREAM] [--clip NAME=FILE]

Prints "port N" when it serves; the streams are rtsp://127.0.0.1:N/NAME, with NAME one of STREAMS below (--serve: another NAME for one of
them; --clip: an MP4 file with H.264, from its beginning for whoever comes first). Then one command a line on stdin, each answered with "done":
  mute NAME | unmute NAME     the stream goes silent, its connections stay open
  resize NAME WIDTH HEIGHT    the pictures of a running stream get another size
  jump NAME SECONDS           the stream's clock is set ahead, or back
Ends at the end of stdin.
"""

import argparse
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402  pylint: disable=wrong-import-position

SOURCE = "videotestsrc is-live=true pattern=ball ! videoscale ! capsfilter name=size caps=video/x-raw,width={width},height={height},framerate={fps}/1 ! "
VALVE = " ! identity name=clock ! valve name=valve "
H264 = "x264enc tune=zerolatency speed-preset=ultrafast threads=1 key-int-max={gop} ! video/x-h264,profile=baseline" + VALVE
STREAMS = {
    "live": SOURCE.format(width=160, height=120, fps=10) + H264.format(gop=20) + "! rtph264pay name=pay0 config-interval=-1",
    # A smart codec: one key frame at first, the next in an hour; and what somebody sees who comes between two.
    "smart": SOURCE.format(width=160, height=120, fps=10) + H264.format(gop=36000) + "! rtph264pay name=pay0 config-interval=1",
    "headless": SOURCE.format(width=160, height=120, fps=10) + H264.format(gop=36000) + "! video/x-h264,stream-format=avc ! "
                "rtph264pay name=pay0",
    "mjpeg": SOURCE.format(width=160, height=120, fps=10) + "videoconvert ! video/x-raw,format=I420 ! jpegenc" + VALVE + "! rtpjpegpay name=pay0",
    "vp8": SOURCE.format(width=160, height=120, fps=10) + "vp8enc deadline=1 keyframe-max-dist=20" + VALVE + "! rtpvp8pay name=pay0",
    "crowd": SOURCE.format(width=64, height=64, fps=5) + H264.format(gop=10) + "! rtph264pay name=pay0 config-interval=-1",
    # A transport stream of noise.
    "garbage": "fakesrc format=time is-live=true do-timestamp=true filltype=random sizetype=fixed sizemax=1316 datarate=65800 ! "
               "video/mpegts,systemstream=true,packetsize=188 ! rtpmp2tpay name=pay0",
}


CLIP = "filesrc location={file} ! qtdemux ! h264parse ! rtph264pay name=pay0 config-interval=-1"

# What is served over one transport only.
TRANSPORTS = {"only-tcp": GstRtsp.RTSPLowerTrans.TCP, "only-udp": GstRtsp.RTSPLowerTrans.UDP}
for each in TRANSPORTS:
    STREAMS[each] = STREAMS["live"]


def drop_key_frames(_pad, info):
    key = not info.get_buffer().has_flags(Gst.BufferFlags.DELTA_UNIT)
    return Gst.PadProbeReturn.DROP if key else Gst.PadProbeReturn.OK


class Factory(GstRtspServer.RTSPMediaFactory):
    def __init__(self, launch):
        super().__init__()
        self.launch = launch
        self.headless = launch == STREAMS["headless"]
        self.running = None
        self.set_shared(True)
        # A camera cannot be sought in, and a stream whose clock is published is not. In others GStreamer seeks whenever somebody begins to
        # play, which holds up a shared stream for all that watch it, and when many begin at once, for ever: two of its threads then wait
        # for each other.
        self.set_publish_clock_mode(GstRtspServer.RTSPPublishClockMode.CLOCK_AND_OFFSET)

    def do_create_element(self, _url):  # pylint: disable=arguments-differ
        self.running = Gst.parse_launch("( " + self.launch + " )")
        if self.headless:
            self.running.get_by_name("clock").get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, drop_key_frames)
        return self.running


class Server:
    def __init__(self, options):
        self.factories = {name: Factory(launch) for name, launch in STREAMS.items()}
        for name, transport in TRANSPORTS.items():
            self.factories[name].set_protocols(transport)
        for renamed in options.serve:
            name, stream = renamed.split("=", 1)
            self.factories[name] = Factory(STREAMS[stream])
        for clip in options.clip:
            name, file = clip.split("=", 1)
            self.factories[name] = Factory(CLIP.format(file=file))
        self.server = GstRtspServer.RTSPServer()
        self.server.set_address("127.0.0.1")
        self.server.set_service(str(options.port))
        mounts = self.server.get_mount_points()
        for name, factory in self.factories.items():
            mounts.add_factory("/" + name, factory)
            if options.user:
                permissions = GstRtspServer.RTSPPermissions()
                permissions.add_role("viewer")
                for permission in ("access", "construct"):
                    permissions.add_permission_for_role("viewer", f"media.factory.{permission}", True)
                factory.set_permissions(permissions)
        if options.user:
            auth = GstRtspServer.RTSPAuth()
            token = GstRtspServer.RTSPToken()
            token.set_string(GstRtspServer.RTSP_TOKEN_MEDIA_FACTORY_ROLE, "viewer")
            auth.set_supported_methods(GstRtsp.RTSPAuthMethod.DIGEST)
            auth.add_digest(options.user, options.password, token)
            self.server.set_auth(auth)
        if self.server.attach(None) == 0:
            sys.exit(f"server.py: cannot listen on port {options.port}")

    def element(self, stream, name):
        return self.factories[stream].running.get_by_name(name)

    def send_at_once(self, stream):
        """Otherwise what is an hour ahead is sent in an hour."""
        elements = self.factories[stream].running.get_parent().iterate_recurse()
        while True:
            result, element = elements.next()
            if result != Gst.IteratorResult.OK:
                break
            if element.find_property("sync"):
                element.set_property("sync", False)

    def obey(self, words):
        match words:
            case ["mute", stream]:
                self.element(stream, "valve").set_property("drop", True)
            case ["unmute", stream]:
                self.element(stream, "valve").set_property("drop", False)
            case ["resize", stream, width, height]:
                caps = Gst.Caps.from_string(f"video/x-raw,width={width},height={height}")
                self.element(stream, "size").set_property("caps", caps)
            case ["jump", stream, seconds]:
                self.send_at_once(stream)
                self.element(stream, "clock").get_static_pad("src").set_offset(int(float(seconds) * Gst.SECOND))
            case _:
                sys.exit(f"server.py: unknown command {words}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--user")
    parser.add_argument("--password", default="")
    parser.add_argument("--serve", action="append", default=[], metavar="NAME=STREAM")
    parser.add_argument("--clip", action="append", default=[], metavar="NAME=FILE")
    options = parser.parse_args()
    for pairs, form in ((options.serve, "--serve: expected NAME=STREAM"), (options.clip, "--clip: expected NAME=FILE")):
        for pair in pairs:
            if not all(pair.partition("=")):
                parser.error(f"{form}, not '{pair}'")
    for pair in options.serve:
        if pair.partition("=")[2] not in STREAMS:
            parser.error(f"--serve {pair}: no such stream (known: {' '.join(STREAMS)})")
    Gst.init(None)
    server = Server(options)
    loop = GLib.MainLoop()

    def on_line(stdin, _condition):
        line = stdin.readline()
        if not line:
            loop.quit()
            return False
        server.obey(line.split())
        print("done", flush=True)
        return True

    GLib.io_add_watch(sys.stdin, GLib.IO_IN | GLib.IO_HUP, on_line)
    print("port", server.server.get_bound_port(), flush=True)
    loop.run()


if __name__ == "__main__":
    main()
