"""A bucket on loopback, and what is in it: for the scripts that judge archives in a bucket.

`Server` runs moto, which keeps the bucket in memory and checks conditions of writes, or s3s-fs, which is fast. The indexes of packs are read here without any
code of the archive, by docs/archive.md alone; needs the command `zstd`."""
import collections, http.client, os, pathlib, struct, subprocess, sys, tempfile, time, urllib.parse, xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import remote_test  # noqa: E402

BUCKET = "transcript-test"
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "testtest", "AWS_REGION": "us-east-1"}
# moto looks at no signature, but lets nobody without one read; and takes a body without a type for a form.
SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0", "Content-Type": "application/octet-stream"}
INDEX, SEEKABLE = b"\x5d\x2a\x4d\x18", 0x8F92EAB1


class Server:
    """A context: an S3 server on a free port, with one bucket. `program` is the path of s3s-fs, or nothing for moto."""

    def __init__(self, program=None):
        self.program, self.port = program, remote_test.free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        place = pathlib.Path(self._folder.name)
        if self.program:
            # This server has folders for buckets.
            place.joinpath("buckets", BUCKET).mkdir(parents=True)
            keys = ["--access-key", KEYS["AWS_ACCESS_KEY_ID"], "--secret-key", KEYS["AWS_SECRET_ACCESS_KEY"]]
            command = [self.program, "--host", "127.0.0.1", "--port", str(self.port), *keys, place / "buckets"]
        else:
            python = remote_test.python_with_moto()
            if python is None:
                self._folder.cleanup()
                sys.exit(0)
            command = [python, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self.folder = place / "buckets" / BUCKET
        with open(place / "log", "wb") as log:
            self.process = subprocess.Popen(command, cwd=place, stdout=log, stderr=log)
        if self.program:
            wait_for(self.port, self.process)
        else:
            remote_test.create_bucket(self.endpoint, self.process)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self._folder.cleanup()


def wait_for(port, process):
    for _ in range(300):
        if process.poll() is not None:
            sys.exit(f"the server ended with {process.returncode}")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            connection.request("GET", "/")
            return connection.getresponse().read()
        except OSError:
            time.sleep(0.1)
        finally:
            connection.close()
    sys.exit("the server does not answer")


def request(port, method, name="", query="", body=None, headers=()):
    """Asks moto; returns status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, f"/{BUCKET}/{urllib.parse.quote(name)}" + (f"?{query}" if query else ""), body, {**SIGNED, **dict(headers)})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def objects(port, prefix=""):
    """the lengths of all objects, by name"""
    found, after = {}, ""
    while True:
        status, _, body = request(port, "GET", query=urllib.parse.urlencode({"list-type": 2, "prefix": prefix, "start-after": after}))
        if status != 200:
            raise ValueError(f"a list has the status {status}")
        tree = xml.etree.ElementTree.fromstring(body)
        space = tree.tag.split("}")[0] + "}"
        for one in tree.iter(space + "Contents"):
            after = one.findtext(space + "Key")
            found[after] = int(one.findtext(space + "Size"))
        if tree.findtext(space + "IsTruncated") != "true":
            return found


def uploads(port):
    """the number of uploads in parts that nobody completed"""
    return request(port, "GET", query="uploads")[2].count(b"<UploadId>")


class Index:
    """What is read of the index of a pack: `captured`, `versions` as (path, captured, length, modified, state), `replaces` as hexadecimal names."""

    def __init__(self, pack):
        count, flags, magic = struct.unpack("<IBI", pack[-9:])
        table = len(pack) - 9 - count * (12 if flags & 0x80 else 8) - 8
        at = pack.rfind(INDEX, 0, table)
        if magic != SEEKABLE or at < 0 or at + 8 + struct.unpack_from("<I", pack, at + 4)[0] != table or pack[at + 8 : at + 16] != b"TRNSCRP1":
            raise ValueError("the pack has no index before its seek table")
        coded = pack[at + 40 : table]
        self._bytes = subprocess.run(["zstd", "-dcq"], input=coded, stdout=subprocess.PIPE, check=True).stdout
        if len(self._bytes) != struct.unpack_from("<Q", pack, at + 16)[0]:
            raise ValueError("the index has another length")
        self._at = 0
        self.captured = self._signed()
        self.packs = self._list(self._name)
        self._list(self._name)
        self._list(self._frame)
        self.versions = self._list(self._version)
        self._list(self._pair)
        self._option(self._number), self._option(self._number)
        self.replaces = self._list(self._replaced)
        if self._at != len(self._bytes):
            raise ValueError("bytes follow the index")

    def _take(self, length):
        self._at += length
        return self._bytes[self._at - length : self._at]

    def _number(self):
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _signed(self):
        value = self._number()
        return value >> 1 ^ -(value & 1)

    def _list(self, item):
        return [item() for _ in range(self._number())]

    def _option(self, item):
        return item() if self._take(1)[0] else None

    def _name(self):
        return self._take(16).hex()

    def _pair(self):
        return self._number(), self._number()

    def _numbers(self, count):
        return [self._number() for _ in range(count)]

    def _frame(self):
        self._numbers(3), self._take(17)
        coding = self._number()
        if coding == 1:
            self._number()
        elif coding == 2:
            self._list(lambda: self._numbers(4))

    def _time(self):
        return self._signed() * 10**9 + self._number()

    def _version(self):
        path, captured, length = self._take(self._number()).decode(), self._signed(), self._number()
        start = self._at
        modified = self._option(self._time)
        self._option(self._time), self._option(self._number), self._option(self._pair), self._take(1)
        state = self._bytes[start : self._at]
        self._option(lambda: self._numbers(4)), self._list(lambda: self._numbers(4)), self._number(), self._option(self._name), self._pair()
        return path, captured, length, modified, state

    def _replaced(self):
        name = self._name()
        self._number(), self._list(lambda: self._option(self._pair))
        return name


def versions(packs):
    """Returns the versions of each path, in the order of their captures, by the bytes of all packs, by name. One that a joined pack has from another one counts once."""
    indexes = {name: Index(pack) for name, pack in packs.items()}
    replaced = {name for index in indexes.values() for name in index.replaces}
    found = collections.defaultdict(list)
    for name, index in indexes.items():
        if name not in replaced:
            for path, *version in index.versions:
                found[path].append(tuple(version))
    return {path: sorted(set(one)) for path, one in found.items()}


def packs(port, prefix):
    """the bytes of all packs of an archive, by name"""
    names = [name for name in objects(port, f"{prefix}/packs/") if name.endswith(".jsonl.zst")]
    return {os.path.basename(name).split(".")[0]: request(port, "GET", name)[2] for name in names}
