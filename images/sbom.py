"""What an image is made of, as CycloneDX 1.5 in JSON: the packages of dpkg's status, the program, and models where there are some."""

import hashlib
import json
import re
import urllib.parse
import uuid

from oci import timestamp


def stanzas(status):
    """Of dpkg's status, one dictionary a package; lines that go on are joined."""
    for stanza in re.split(r"\n\n+", status.strip()):
        yield dict(re.findall(r"^([A-Za-z-]+): *(.*(?:\n .*)*)", stanza, re.MULTILINE))


def licences(text):
    """Short names of a copyright file that machines can read (DEP 5), in its order of letters; none of another."""
    if not re.match(r"\s*Format(-Specification)?:.*(copyright-format|dep)", text):
        return []
    return sorted(set(re.findall(r"^License: *(\S.*?)\s*$", text, re.MULTILINE)))


def organisation(maintainer):
    """`Name <address>`"""
    found = re.match(r"(.*?)\s*<(.*)>$", maintainer)
    if not found:
        return {"name": maintainer}
    return {"name": found.group(1).strip('"'), "contact": [{"email": found.group(2)}]}


def package(stanza, copyright_of, system, linked="dynamically"):
    """`system`: ID and VERSION_ID of /etc/os-release; `linked`: whether it lies in the image, or has become part of the program"""
    name, version, architecture = stanza["Package"], stanza["Version"], stanza["Architecture"]
    source = stanza.get("Source", name).split()[0]
    purl = (f"pkg:deb/{system[0]}/{urllib.parse.quote(name)}@{urllib.parse.quote(version)}?arch={architecture}&distro={system[0]}-{system[1]}")
    component = {"type": "library", "bom-ref": purl, "purl": purl, "name": name, "version": version, "supplier": organisation(stanza["Maintainer"]),
                 "properties": [{"name": "vigil:linked", "value": linked}, {"name": "vigil:source", "value": source}]}
    found = licences(copyright_of(name))
    if found:
        component["licenses"] = [{"license": {"name": each}} for each in found]
    return component


def model(name, weights):
    """`weights`: {file: its bytes}"""
    files = [{"type": "file", "bom-ref": f"model:{name}/{file}", "name": file, "hashes": sha256(data)} for file, data in sorted(weights.items())]
    return {"type": "machine-learning-model", "bom-ref": f"model:{name}", "name": name, "licenses": [{"license": {"id": "Apache-2.0"}}], "components": files}


def sha256(data):
    return [{"alg": "SHA-256", "content": hashlib.sha256(data).hexdigest()}]


def document(status, compiled_in, copyright_of, system, program, version, revision, models, epoch):
    """`compiled_in`: stanzas of packages of which headers or static libraries are in the program; `program`: its bytes; `models`: {name: {file of weights: its
    bytes}}. The same parts give the same text."""
    shared = list(stanzas(status))
    components = [package(stanza, copyright_of, system) for stanza in shared]
    # Of a source that is there as a library too, that library is named already. Headers of the kernel hold numbers alone.
    sources = {stanza.get("Source", stanza["Package"]).split()[0] for stanza in shared} | {"linux"}
    components += [package(stanza, copyright_of, system, "statically") for stanza in compiled_in if stanza["Source"] not in sources]
    components += [model(name, weights) for name, weights in sorted(models.items())]
    vigil = {"type": "application", "bom-ref": "vigil", "name": "vigil", "version": version, "hashes": sha256(program),
             "licenses": [{"license": {"id": "Apache-2.0"}}], "properties": [{"name": "vigil:revision", "value": revision}]}
    bom = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
           "metadata": {"timestamp": timestamp(epoch), "component": vigil}, "components": components,
           "dependencies": [{"ref": "vigil", "dependsOn": [each["bom-ref"] for each in components]}]}
    bom["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(bom, sort_keys=True))}"
    return json.dumps(bom, indent=1, sort_keys=True) + "\n"
