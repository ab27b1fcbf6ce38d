"""A local in-memory S3 server with conditional writes and optional faults."""

import hashlib
import re
import threading
import urllib.parse
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape, unescape

PAGE = 50
"""The number of objects in one page of a listing; S3 has a thousand."""


class S3Server(ThreadingHTTPServer):
    """A server with buckets of objects: bytes, tags and times.

    `lose` has functions of method and key: the first request for which such a function returns true is
    carried out but not answered. `heeds` names the conditional headers that the server supports.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.buckets, self.uploads, self.lock = {"bucket": {}}, {}, threading.Lock()
        self.lose, self.heeds, self.log = [], {"If-None-Match", "If-Match"}, []
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def fault(self, method, key):
        """Return the fault of a request: "dropped", "busy", "lost" or "cut"; None for a normal answer."""
        with self.lock:
            lost = next((each for each in self.lose if each(method, key)), None)
            if lost is None:
                return None
            self.lose.remove(lost)
            return "lost"

    @staticmethod
    def now():
        """Return the modification time for an object."""
        return datetime.now(UTC)

    @property
    def objects(self):
        return self.buckets["bucket"]

    @property
    def environment(self):
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server_port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }


def _tag(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_):
        pass

    def _serve(self):
        url = urllib.parse.urlsplit(self.path)
        bucket, _, key = urllib.parse.unquote(url.path).lstrip("/").partition("/")
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.server.fault(self.command, key)
        if fault == "dropped":
            self.close_connection = True
            return
        with self.server.lock:
            self.server.log.append((self.command, key))
            if fault == "busy":
                answer = 503, {}, _error("SlowDown")
            elif "Credential=key/" not in self.headers.get("Authorization", ""):
                answer = 403, {}, _error("InvalidAccessKeyId")
            elif bucket not in self.server.buckets:
                answer = 404, {}, _error("NoSuchBucket")
            else:
                ask = getattr(self, f"_{self.command.lower()}")
                answer = ask(self.server.buckets[bucket], key, query, body)
        if fault == "lost":
            self.close_connection = True
            return
        status, headers, data = answer
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if fault == "cut" else data)
        self.wfile.flush()
        self.close_connection |= fault == "cut"

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815  names of http.server

    def _get(self, objects, key, query, _):
        if not key:
            return 200, {"Content-Type": "application/xml"}, _listing(objects, query)
        if key not in objects:
            return 404, {}, _error("NoSuchKey")
        data, changed = objects[key]
        stamp = changed.strftime("%a, %d %b %Y %H:%M:%S GMT")
        headers = {"ETag": _tag(data), "Last-Modified": stamp, "Content-Length": str(len(data))}
        return 200, headers, data

    _head = _get

    def _put(self, objects, key, query, body):
        if source := self.headers.get("x-amz-copy-source"):
            found = objects.get(urllib.parse.unquote(source).lstrip("/").partition("/")[2])
            if found is None:
                return 404, {}, _error("NoSuchKey")
            return self._keep(objects, key, found[0], copied=True)
        if "partNumber" in query:
            self.server.uploads[query["uploadId"]][int(query["partNumber"])] = body
            return 200, {"ETag": _tag(body)}, b""
        none, match = self.headers.get("If-None-Match"), self.headers.get("If-Match")
        if none and key in objects and "If-None-Match" in self.server.heeds:
            return 412, {}, _error("PreconditionFailed")
        if match and "If-Match" in self.server.heeds:
            if key not in objects:
                return 404, {}, _error("NoSuchKey")
            if _tag(objects[key][0]) != match:
                return 412, {}, _error("PreconditionFailed")
        return self._keep(objects, key, body)

    def _keep(self, objects, key, data, *, copied=False):
        objects[key] = data, self.server.now()
        page = _element("CopyObjectResult", f"<ETag>{_tag(data)}</ETag>") if copied else b""
        return 200, {"ETag": _tag(data)}, page

    def _post(self, objects, key, query, body):
        if "delete" in query:
            names = re.findall(r"<Key>(.*?)</Key>", body.decode())
            for name in names:
                objects.pop(unescape(name), None)
            deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
            return 200, {}, f"<DeleteResult>{deleted}</DeleteResult>".encode()
        if "uploads" in query:
            upload = str(len(self.server.uploads))
            self.server.uploads[upload] = {}
            return 200, {}, _element("InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>")
        parts = self.server.uploads.pop(query["uploadId"])
        data = b"".join(parts[number] for number in sorted(parts))
        self._keep(objects, key, data)
        return 200, {}, _element("CompleteMultipartUploadResult", f"<ETag>{_tag(data)}</ETag>")

    def _delete(self, objects, key, _, __):
        objects.pop(key, None)
        return 204, {}, b""


def _element(name, inside):
    return f"<{name}>{inside}</{name}>".encode()


def _error(code):
    return _element("Error", f"<Code>{code}</Code><Message>{code}</Message>")


def _listing(objects, query):
    after = query.get("continuation-token") or query.get("start-after", "")
    found = sorted(name for name in objects if name.startswith(query.get("prefix", "")) and name > after)
    page, more = found[:PAGE], len(found) > PAGE
    rows = "".join(
        f"<Contents><Key>{escape(name)}</Key><Size>{len(objects[name][0])}</Size>"
        f"<LastModified>{objects[name][1]:%Y-%m-%dT%H:%M:%S.000Z}</LastModified>"
        f"<ETag>{escape(_tag(objects[name][0]))}</ETag></Contents>"
        for name in page
    )
    token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if more else ""
    head = f"<IsTruncated>{str(more).lower()}</IsTruncated><KeyCount>{len(page)}</KeyCount>{token}"
    return _element("ListBucketResult", head + rows)
