#!/usr/bin/python3
"""GStreamer's RTSP server with drawn scenes, a server of its own for each camera, so that one can go without the others.

  rtsp_server.py ADDRESS FIRST_PORT WIDTHxHEIGHT FPS NAME...
  rtsp_server.py --try          whether it can be run here

The streams are rtsp://ADDRESS:PORT/NAME, with ports in the order of names; prints "ready" when all are served. Then one command a line on standard input, each
answered with "done":
  gone NAME | there NAME       its connections are closed, and who comes is told that there is no such stream; it is there again
  moving NAME | still NAME     the whole picture is shifted from frame to frame, or stands still
"""

import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402  pylint: disable=wrong-import-position

SPEED = 6
SCENE = ("( videotestsrc name=scene is-live=true pattern=smpte75 horizontal-speed={speed} ! video/x-raw,width={width},height={height},framerate={fps}/1 ! "
         "x264enc tune=zerolatency speed-preset=ultrafast threads=1 key-int-max={fps} ! video/x-h264,profile=baseline ! rtph264pay name=pay0 config-interval=-1 )")


class Camera(GstRtspServer.RTSPMediaFactory):
    def __init__(self, address, port, size, fps, name):
        super().__init__()
        self.path, self.size, self.fps, self.scene, self.speed = f"/{name}", size, fps, None, SPEED
        self.set_shared(True)
        # A stream whose clock is published is not sought in, as a camera is not.
        self.set_publish_clock_mode(GstRtspServer.RTSPPublishClockMode.CLOCK_AND_OFFSET)
        self.server = GstRtspServer.RTSPServer()
        self.server.set_address(address)
        self.server.set_service(str(port))
        self.there()
        if self.server.attach(None) == 0:
            sys.exit(f"rtsp_server.py: cannot listen at {address}:{port}")

    def do_create_element(self, _url):  # pylint: disable=arguments-differ
        width, height = self.size.split("x")
        made = Gst.parse_launch(SCENE.format(speed=self.speed, width=width, height=height, fps=self.fps))
        self.scene = made.get_by_name("scene")
        return made

    def there(self):
        self.server.get_mount_points().add_factory(self.path, self)

    def gone(self):
        self.server.get_mount_points().remove_factory(self.path)
        self.server.client_filter(lambda _server, _client: GstRtspServer.RTSPFilterResult.REMOVE)

    def move(self, speed):
        """Of who watches, and of who will."""
        self.speed = speed
        if self.scene:
            self.scene.set_property("horizontal-speed", speed)


def main():
    Gst.init(None)
    if sys.argv[1:] == ["--try"]:
        lacking = [each for each in ("videotestsrc", "x264enc", "rtph264pay") if Gst.ElementFactory.find(each) is None]
        sys.exit(f"no {', '.join(lacking)}" if lacking else 0)
    address, port, size, fps, *names = sys.argv[1:]
    cameras = {name: Camera(address, int(port) + i, size, fps, name) for i, name in enumerate(names)}
    loop = GLib.MainLoop()

    def obey(stdin, _condition):
        line = stdin.readline()
        if not line:
            loop.quit()
            return False
        match line.split():
            case ["gone", name]:
                cameras[name].gone()
            case ["there", name]:
                cameras[name].there()
            case ["moving", name]:
                cameras[name].move(SPEED)
            case ["still", name]:
                cameras[name].move(0)
            case words:
                sys.exit(f"rtsp_server.py: unknown command {words}")
        print("done", flush=True)
        return True

    GLib.io_add_watch(sys.stdin, GLib.IO_IN | GLib.IO_HUP, obey)
    print("ready", flush=True)
    loop.run()


if __name__ == "__main__":
    main()
