"""Registries of crates, Python packages and npm packages on loopback, as small as their clients allow. A registry answers
(status, content type, body) to (method, path, body), or None to what it does not know."""
import base64, hashlib, html, http.server, json, pathlib, re, struct, threading, urllib.parse

from project import Served

JSON, TEXT, HTML, BYTES = "application/json", "text/plain", "text/html", "application/octet-stream"


def index_path(name):
    """where the index of cargo has a crate"""
    name = name.lower()
    folder = {1: "1", 2: "2", 3: f"3/{name[:1]}"}.get(len(name), f"{name[:2]}/{name[2:4]}")
    return f"{folder}/{name}"


def index_dependency(dependency, toml_name, package_name):
    """a dependency as the index has it: `name` is what features call it, `package` the crate"""
    renamed = {} if toml_name == package_name else {"package": package_name}
    kept = {key: dependency[key] for key in ("features", "optional", "target")}
    return {"name": toml_name, "kind": dependency["kind"] or "normal", **kept, **renamed}


class Crates:
    """A sparse registry. It has what is published to it and, so that nothing else has to be asked, the crates of others that a lock file names, from
    the folders in which cargo keeps them."""

    def __init__(self, url):
        self.url = url
        self.lines = {}
        self.archives = {}
        self.published = []

    def add(self, line, archive):
        versions = self.lines.setdefault(index_path(line["name"]), {})
        if line["vers"] in versions:
            return False
        versions[line["vers"]] = json.dumps(line)
        self.archives[line["name"], line["vers"]] = archive
        return True

    def add_others(self, packages, lock, caches):
        """adds the crates of others among the packages of `cargo metadata`"""
        blocks = (dict(re.findall(r'^(name|version|checksum) = "(.*)"', block, re.M)) for block in lock.split("[[package]]")[1:])
        checksums = {(block["name"], block["version"]): block.get("checksum") for block in blocks}
        for package in packages:
            if package["source"] is None:
                continue
            name, version = package["name"], package["version"]
            archive = next((path for cache in caches if (path := cache / f"{name}-{version}.crate").exists()), None)
            if archive is None:
                raise FileNotFoundError(f"no archive of {name} {version} where cargo keeps them: run `cargo fetch --locked`")
            dependencies = [
                {
                    **index_dependency(dependency, dependency["rename"] or dependency["name"], dependency["name"]),
                    "req": dependency["req"],
                    "default_features": dependency["uses_default_features"],
                }
                for dependency in package["dependencies"]
            ]
            about = {"name": name, "vers": version, "deps": dependencies, "cksum": checksums[name, version], "yanked": False}
            self.add({**about, "features": {}, "features2": package["features"], "links": package["links"], "v": 2}, archive)

    def publish(self, body):
        (length,) = struct.unpack_from("<I", body)
        sent = json.loads(body[4 : 4 + length])
        (archive_length,) = struct.unpack_from("<I", body, 4 + length)
        archive = body[8 + length :]
        if len(archive) != archive_length:
            return f"the archive has {len(archive)} bytes, not {archive_length}"
        dependencies = [
            {
                **index_dependency(dependency, dependency.get("explicit_name_in_toml") or dependency["name"], dependency["name"]),
                "req": dependency["version_req"],
                "default_features": dependency["default_features"],
            }
            for dependency in sent["deps"]
        ]
        absent = [dependency for dependency in dependencies if index_path(dependency.get("package", dependency["name"])) not in self.lines]
        if missing := [dependency["name"] for dependency in absent if not dependency["optional"] and dependency["kind"] != "dev"]:
            return f"{sent['name']} depends on {', '.join(missing)}, which this registry does not have"
        line = {"name": sent["name"], "vers": sent["vers"], "deps": dependencies, "cksum": hashlib.sha256(archive).hexdigest(), "yanked": False}
        line |= {"features": {}, "features2": sent["features"], "links": sent.get("links"), "v": 2}
        if not self.add(line, archive):
            return f"{sent['name']} {sent['vers']} is published already"
        self.published.append((sent["name"], sent["vers"], len(archive)))
        return None

    def answer(self, method, path, body):
        if method == "PUT" and path == "api/v1/crates/new":
            if refused := self.publish(body):
                return 200, JSON, json.dumps({"errors": [{"detail": refused}]})
            return 200, JSON, json.dumps({"warnings": {"invalid_categories": [], "invalid_badges": [], "other": []}})
        if path == "index/config.json":
            return 200, JSON, json.dumps({"dl": f"{self.url}/dl/{{crate}}/{{version}}", "api": self.url})
        if path.startswith("index/") and (versions := self.lines.get(path.removeprefix("index/"))):
            return 200, TEXT, "".join(f"{line}\n" for line in versions.values())
        if path.startswith("dl/") and (archive := self.archives.get(tuple(path.split("/")[1:]))):
            return 200, BYTES, archive.read_bytes() if isinstance(archive, pathlib.Path) else archive
        return None


class PythonPackages:
    """An index of the simple form, and the address to which files are uploaded."""

    def __init__(self, url):
        self.url = url
        self.files = {}
        self.published = []

    @staticmethod
    def normal(name):
        return re.sub(r"[-_.]+", "-", name).lower()

    def publish(self, body, content_type):
        boundary = b"\r\n--" + re.search(r'boundary="?([^";]+)', content_type)[1].encode()
        text, content, file = {}, b"", ""
        for part in (b"\r\n" + body).split(boundary)[1:-1]:
            head, _, value = part.partition(b"\r\n\r\n")
            about = dict(re.findall(r'(\w+)="(.*?)"', head.decode()))
            if about["name"] == "content":
                content, file = value, about["filename"]
            else:
                text[about["name"]] = value.decode()
        if hashlib.sha256(content).hexdigest() != text["sha256_digest"]:
            return 400, TEXT, f"{file} has another checksum"
        if file in self.files:
            return 400, TEXT, f"{file} is published already"
        self.files[file] = self.normal(text["name"]), content
        self.published.append((file, text["version"], len(content)))
        return 200, TEXT, "published"

    def answer(self, method, path, body, content_type=""):
        if method == "POST" and path == "upload/":
            return self.publish(body, content_type)
        if found := re.fullmatch(r"simple/([^/]+)/", path):
            files = [(file, content) for file, (name, content) in self.files.items() if name == self.normal(found[1])]
            links = "".join(
                f'<a href="{self.url}/files/{html.escape(file)}#sha256={hashlib.sha256(content).hexdigest()}">{html.escape(file)}</a>\n'
                for file, content in files
            )
            return (200, HTML, f"<!doctype html>\n{links}") if files else None
        if path.startswith("files/") and path.removeprefix("files/") in self.files:
            return 200, BYTES, self.files[path.removeprefix("files/")][1]
        return None


class NpmPackages:
    """A registry that has the document of each package, and its tarballs."""

    def __init__(self, url):
        self.url = url
        self.documents = {}
        self.tarballs = {}
        self.published = []

    def publish(self, name, body):
        sent = json.loads(body)
        document = self.documents.setdefault(name, {"name": name, "dist-tags": {}, "versions": {}})
        for version, manifest in sent["versions"].items():
            if version in document["versions"]:
                return 403, JSON, json.dumps({"error": f"{name} {version} is published already"})
            (attachment,) = sent["_attachments"].values()
            tarball = base64.b64decode(attachment["data"])
            integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
            if manifest["dist"]["integrity"] != integrity:
                return 400, JSON, json.dumps({"error": f"{name} {version} has another checksum"})
            file = f"{name.split('/')[-1]}-{version}.tgz"
            self.tarballs[f"{name}/-/{file}"] = tarball
            document["versions"][version] = {**manifest, "dist": {**manifest["dist"], "tarball": f"{self.url}/{name}/-/{file}"}}
            self.published.append((name, version, len(tarball)))
        document["dist-tags"].update(sent["dist-tags"])
        return 201, JSON, json.dumps({"ok": True})

    def answer(self, method, path, body):
        path = urllib.parse.unquote(path)
        if method == "PUT" and "/-/" not in path:
            return self.publish(path, body)
        if path in self.documents:
            return 200, JSON, json.dumps(self.documents[path])
        if path in self.tarballs:
            return 200, BYTES, self.tarballs[path]
        return None


class Registries(Served):
    """the three of them, on one port"""

    def __init__(self):
        registries = self
        lock = threading.Lock()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body in one write: with two, each answer waits for an acknowledgement.
            wbufsize = -1

            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                kind, _, path = self.path.split("?")[0].lstrip("/").partition("/")
                more = [self.headers.get("Content-Type", "")] if kind == "python" else []
                with lock:
                    registry = registries.by_kind.get(kind)
                    status, content_type, content = registry and registry.answer(self.command, path, body, *more) or (404, TEXT, "not found")
                content = content if isinstance(content, bytes) else content.encode()
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_HEAD = do_PUT = do_POST = do_GET

            def log_message(self, *_):
                pass

        super().__init__(Handler)
        self.crates = Crates(f"{self.url}/crates")
        self.python = PythonPackages(f"{self.url}/python")
        self.npm = NpmPackages(f"{self.url}/npm")
        self.by_kind = {"crates": self.crates, "python": self.python, "npm": self.npm}
