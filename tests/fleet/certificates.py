"""Certificates of nodes and of etcd, as a site's own authority would issue them."""

import os
import subprocess


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=30)


class Authority:
    def __init__(self, folder, name):
        self.folder = os.path.join(folder, name)
        os.makedirs(self.folder)
        self.certificate, self.key = os.path.join(self.folder, "ca.crt"), os.path.join(self.folder, "ca.key")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                "-keyout", self.key, "-out", self.certificate)

    def issue(self, folder, names="IP:127.0.0.1,DNS:localhost"):
        """ca.crt, tls.crt and tls.key, as a Kubernetes TLS secret has them."""
        os.makedirs(folder, exist_ok=True)
        paths = {name: os.path.join(folder, name) for name in ("ca.crt", "tls.crt", "tls.key")}
        request, more = os.path.join(folder, "request"), os.path.join(folder, "more")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=node", "-keyout", paths["tls.key"],
                "-out", request)
        with open(more, "w") as file:
            file.write(f"subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\n")
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-days", "1", "-extfile", more,
                "-out", paths["tls.crt"])
        with open(self.certificate) as source, open(paths["ca.crt"], "w") as target:
            target.write(source.read())
        os.chmod(paths["tls.key"], 0o600)
        return paths
