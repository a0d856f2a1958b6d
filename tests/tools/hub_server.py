#!/usr/bin/env python3
"""A Hub on the loopback interface, for tests: real HTTP (or TLS), with the faults that a test requests.

    hub_server.py FOLDER [--tls CERTIFICATE KEY]

FOLDER/org/name/* are the files of a model. FOLDER/org/name/.faults.json may hold, all optional:

    status        {"FILE": [403, "GatedRepo"]}   answers this instead, with X-Error-Code; "*": every file
    times         2                              number of answers with `status`; later ones are normal
    retry_after   1                              Retry-After of these answers
    cut_after     20000                          closes the connection after this many bytes of a body
    bytes_per_s   100000                         maximum rate
    silent        true                           sends only the headers
    announce      5                              HEAD announces this many bytes too many
    announce_weights 5                           the same for weights only
    total         5                              the same in Content-Range and Content-Length
    flip          true                           changes one byte
    no_ranges     true                           ignores Range: 200 with the whole file
    short_ranges  1000                           maximum bytes per range
    renamed       "org/other"                    redirects (307) to another name, as the Hub does
    token         "hf_..."                       401 without this token
    redirect      "URL"                          location of weights, instead of the second server
    expires       3                              the second server answers 403 after this many requests
    no_listing    true                           /api/models answers 404
    listed        ["a", ...]                     /api/models lists these files
    packed        true                           claims to send weights as gzip
    headers       100                            sends this many extra headers of 1000 bytes

Weights (*.safetensors) are "LFS": redirected to a second server on another port that takes no token. Prints one line,
{"endpoint": ..., "second": ...}, then a JSON line for each request: server, method, path, range, token (whether one was
sent). Ends with its standard input.
"""

import argparse
import hashlib
import http.server
import json
import os
import ssl
import sys
import threading
import time
import urllib.parse

PRINTING = threading.Lock()
COUNTS = {}


def say(line):
    with PRINTING:
        print(json.dumps(line), flush=True)


def counted(key):
    with PRINTING:
        COUNTS[key] = COUNTS.get(key, 0) + 1
        return COUNTS[key]


class Repo:
    def __init__(self, root, name):
        self.name = name
        self.folder = os.path.join(root, name)
        faults = os.path.join(self.folder, ".faults.json")
        self.faults = json.load(open(faults)) if os.path.exists(faults) else {}

    def exists(self):
        return os.path.isdir(self.folder)

    def files(self):
        names = []
        for base, _, files in os.walk(self.folder):
            names += [os.path.relpath(os.path.join(base, name), self.folder) for name in files if name[0] != "."]
        return sorted(names)

    def path(self, name):
        return os.path.join(self.folder, name)

    def commit(self):
        digest = hashlib.sha1(self.name.encode())
        for name in self.files():
            digest.update(name.encode() + open(self.path(name), "rb").read())
        return digest.hexdigest()

    def etag(self, name):
        content = open(self.path(name), "rb").read()
        if is_large(name):
            return hashlib.sha256(content).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def is_large(name):
    return name.endswith(".safetensors")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        path = urllib.parse.urlsplit(self.path).path
        say({"server": self.server.role, "method": self.command, "path": path, "range": self.headers.get("Range"),
             "token": self.headers.get("Authorization") is not None})
        try:
            if self.server.role == "second":
                self.answer_second(path)
            elif path.startswith("/api/models/"):
                self.answer_listing(path[len("/api/models/"):])
            else:
                self.answer_resolve(path)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def refuse(self, status, code="", message="", headers=()):
        body = json.dumps({"error": message}).encode()
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        if message:
            self.send_header("X-Error-Message", message)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def lacks_token(self, repo):
        wanted = repo.faults.get("token")
        return wanted and self.headers.get("Authorization") != "Bearer " + wanted

    def answer_listing(self, rest):
        repo = Repo(self.server.root, rest.split("/revision/")[0].split("/tree/")[0])
        if not repo.exists() or self.lacks_token(repo):
            return self.refuse(401, "RepoNotFound", "Repository not found")
        if repo.faults.get("no_listing"):
            return self.refuse(404)
        commit = repo.commit()
        if "/tree/" in rest:  # what huggingface_hub's snapshot_download asks
            entries = [{"type": "file", "path": name, "size": os.path.getsize(repo.path(name)), "oid": repo.etag(name)}
                       for name in repo.files()]
            return self.send_json(entries, commit)
        return self.send_json({"id": repo.name, "modelId": repo.name, "sha": commit, "private": False, "tags": [],
                               "downloads": 0, "likes": 0, "siblings": [{"rfilename": name} for name in repo.faults.get("listed", repo.files())]},
                              commit)

    def send_json(self, value, commit):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Repo-Commit", commit)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_resolve(self, path):
        name, _, rest = path.lstrip("/").partition("/resolve/")
        revision, _, file = rest.partition("/")
        file = urllib.parse.unquote(file)
        repo = Repo(self.server.root, name)
        faults = repo.faults
        if not repo.exists():
            return self.refuse(401, "RepoNotFound", "Repository not found")
        if "renamed" in faults:
            return self.redirect(307, f"/{faults['renamed']}/resolve/{revision}/{file}")
        if self.lacks_token(repo):
            return self.refuse(401, "GatedRepo", "Access to this model is restricted")
        status = faults.get("status", {})
        wrong = status.get(file, status.get("*"))
        if wrong and counted((name, file)) <= faults.get("times", 1 << 30):
            extra = [("Retry-After", str(faults["retry_after"]))] if "retry_after" in faults else []
            return self.refuse(wrong[0], wrong[1] if len(wrong) > 1 else "", headers=extra)
        commit = repo.commit()
        if urllib.parse.unquote(revision) not in ("main", "v1.0", "refs/pr/1", commit):
            return self.refuse(404, "RevisionNotFound", "Invalid rev id")
        if not os.path.isfile(repo.path(file)):
            return self.refuse(404, "EntryNotFound", "Entry not found", [("X-Repo-Commit", commit)])
        size = os.path.getsize(repo.path(file)) + faults.get("announce", 0)
        size += faults.get("announce_weights", 0) if is_large(file) else 0
        headers = [("X-Repo-Commit", commit), ("ETag", f'"{repo.etag(file)}"')]
        if is_large(file):
            headers += [("X-Linked-Etag", f'"{repo.etag(file)}"'), ("X-Linked-Size", str(size))]
            target = faults.get("redirect", f"{self.server.second}/{name}/{file}?signature=x")
            return self.redirect(302, target, headers)
        self.send_file(repo, file, headers, size)

    def answer_second(self, path):
        org, name, file = path.lstrip("/").split("/", 2)
        repo = Repo(self.server.root, f"{org}/{name}")
        expires = repo.faults.get("expires")
        if self.headers.get("Authorization"):
            return self.refuse(400, message="a token was sent to a host that is not the Hub")
        if expires is not None and counted(("second", path)) == expires:
            return self.refuse(403, message="the signature has expired")
        self.send_file(repo, file, [("ETag", '"of-the-second"')], os.path.getsize(repo.path(file)))

    def redirect(self, status, target, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def send_file(self, repo, file, headers, announced):
        faults = repo.faults
        content = open(repo.path(file), "rb").read()
        if faults.get("flip") and is_large(file):
            content = content[:-1] + bytes([content[-1] ^ 1])
        first, last, status = 0, len(content) - 1, 200
        wanted = self.headers.get("Range")
        if wanted and not faults.get("no_ranges"):
            begin, _, end = wanted.removeprefix("bytes=").partition("-")
            first, last, status = int(begin), min(int(end or last), last), 206
            last = min(last, first + faults.get("short_ranges", 1 << 60) - 1)
            if first > last:
                return self.refuse(416, headers=[("Content-Range", f"bytes */{len(content)}")])
        body = content[first:last + 1]
        self.send_response(status)
        for number in range(faults.get("headers", 0)):
            self.send_header(f"X-{number}", "x" * 1000)
        if faults.get("packed") and is_large(file):
            self.send_header("Content-Encoding", "gzip")
        for name, value in headers:
            self.send_header(name, value)
        total = len(content) + (faults.get("total", 0) if is_large(file) else 0)
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{last}/{total}")
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_header("Content-Length", str(announced if self.command == "HEAD" else total))
        self.end_headers()
        if self.command != "HEAD":
            self.send_body(body, faults if is_large(file) else {})

    def send_body(self, body, faults):
        if faults.get("silent"):
            time.sleep(3600)
        cut, rate = faults.get("cut_after"), faults.get("bytes_per_s")
        step = max(1, rate // 20) if rate else 1 << 16
        for at in range(0, len(body), step):
            piece = body[at:at + step]
            if cut is not None and at + len(piece) > cut:
                self.wfile.write(piece[:max(0, cut - at)])
                self.wfile.flush()
                self.close_connection = True
                self.connection.close()
                return
            self.wfile.write(piece)
            if rate:
                time.sleep(step / rate)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):  # clients may disconnect at any time
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--tls", nargs=2)
    options = parser.parse_args()
    hub, second = Server(("127.0.0.1", 0), Handler), Server(("127.0.0.1", 0), Handler)
    scheme = "http"
    if options.tls:
        scheme = "https"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*options.tls)
        for server in (hub, second):
            server.socket = context.wrap_socket(server.socket, server_side=True)
    for server, role in ((hub, "hub"), (second, "second")):
        server.role, server.root = role, options.folder
        server.second = f"{scheme}://127.0.0.1:{second.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
    say({"endpoint": f"{scheme}://127.0.0.1:{hub.server_address[1]}", "second": hub.second})
    sys.stdin.read()


if __name__ == "__main__":
    main()
