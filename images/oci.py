"""An image as one tar archive that docker, podman, skopeo and containerd take: the layout of the Open Container Initiative, and Docker's own list beside it."""

import datetime
import gzip
import hashlib
import io
import json
import os
import tarfile


def timestamp(epoch):
    return datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def encoded(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


class Counting:
    """A file that is written, and what a reader will need to know of it: its SHA-256 and its size."""

    def __init__(self, file):
        self.file, self.digest, self.size = file, hashlib.sha256(), 0

    def write(self, data):
        self.digest.update(data)
        self.size += len(data)
        return self.file.write(data)

    def tell(self):
        return self.size

    def flush(self):
        self.file.flush()


class Image:
    """Blobs are written to the folder `scratch` first, under their digests."""

    def __init__(self, scratch, architecture, epoch):
        self.folder = os.path.join(scratch, "blobs")
        os.makedirs(self.folder)
        self.architecture, self.epoch = architecture, epoch
        self.layers, self.history, self.sizes = [], [], []

    def blob(self, data, media_type):
        digest = hashlib.sha256(data).hexdigest()
        with open(os.path.join(self.folder, digest), "wb") as file:
            file.write(data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def add_layer(self, tree, what):
        path = os.path.join(self.folder, "layer")
        with open(path, "wb") as file:
            packed = Counting(file)
            # No name and no time in its header.
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=packed, mtime=0) as compressed:
                plain = Counting(compressed)
                tree.write(plain)
        os.rename(path, os.path.join(self.folder, packed.digest.hexdigest()))
        self.layers.append(({"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": f"sha256:{packed.digest.hexdigest()}", "size": packed.size},
                            f"sha256:{plain.digest.hexdigest()}"))
        self.history.append({"created": timestamp(self.epoch), "created_by": "scripts/image", "comment": what})
        self.sizes.append((what, packed.size, plain.size))

    def write(self, path, settings, name):
        """`settings`: what the image declares (User, Entrypoint, Labels, ...). Returns the digest of the image's manifest."""
        config = self.blob(encoded({
            "architecture": self.architecture, "os": "linux", "created": timestamp(self.epoch), "config": settings,
            "rootfs": {"type": "layers", "diff_ids": [plain for _, plain in self.layers]}, "history": self.history}),
            "application/vnd.oci.image.config.v1+json")
        manifest = self.blob(encoded({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
            "layers": [layer for layer, _ in self.layers], "annotations": settings["Labels"]}), "application/vnd.oci.image.manifest.v1+json")
        listed = {**manifest, "platform": {"architecture": self.architecture, "os": "linux"},
                  "annotations": {"org.opencontainers.image.ref.name": name.rpartition(":")[2], "io.containerd.image.name": name}}

        def place(blob):
            return "blobs/sha256/" + blob["digest"].removeprefix("sha256:")

        files = {
            "oci-layout": encoded({"imageLayoutVersion": "1.0.0"}),
            "index.json": encoded({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [listed]}),
            "manifest.json": encoded([{"Config": place(config), "RepoTags": [name], "Layers": [place(layer) for layer, _ in self.layers]}]),
            **{place({"digest": each}): None for each in os.listdir(self.folder)}}
        with tarfile.open(f"{path}.part", "w", format=tarfile.USTAR_FORMAT, copybufsize=1 << 20) as archive:
            for file, data in sorted(files.items()):
                info = tarfile.TarInfo(file)
                info.mode, info.mtime = 0o644, self.epoch
                with io.BytesIO(data) if data is not None else open(os.path.join(self.folder, os.path.basename(file)), "rb") as source:
                    info.size = source.seek(0, os.SEEK_END)
                    source.seek(0)
                    archive.addfile(info, source)
        os.replace(f"{path}.part", path)
        return manifest["digest"]
