"""What the scene's web server serves to package managers: one small package for each, and a git
repository. Nothing is fetched from anywhere."""
import base64
import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
import zipfile

import world

BASE = f"https://{world.PACKAGES}"


def put(folder, name, content):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return path


def tarball(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def npm(folder):
    about = {"name": "left-glove", "version": "1.0.0", "main": "index.js"}
    archive = tarball({"package/package.json": json.dumps(about),
                       "package/index.js": "module.exports = 'left glove';\n"})
    put(folder, "npm/left-glove/-/left-glove-1.0.0.tgz", archive)
    dist = {"tarball": f"{BASE}/npm/left-glove/-/left-glove-1.0.0.tgz",
            "shasum": hashlib.sha1(archive).hexdigest(),
            "integrity": "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()}
    # A file and a folder cannot share a name: the listing asks for /npm/left-glove through this one.
    put(folder, "npm/left-glove.json", json.dumps(
        {"name": "left-glove", "dist-tags": {"latest": "1.0.0"},
         "versions": {"1.0.0": {**about, "dist": dist}}}))


def pypi(folder):
    files = {"right_glove.py": "WORD = 'right glove'\n",
             "right_glove-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: right-glove\nVersion: 1.0\n",
             "right_glove-1.0.dist-info/WHEEL":
                 "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    files["right_glove-1.0.dist-info/RECORD"] = "".join(
        f"{name},,\n" for name in [*files, "right_glove-1.0.dist-info/RECORD"])
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    name = "right_glove-1.0-py3-none-any.whl"
    put(folder, "pypi/" + name, wheel.getvalue())
    put(folder, "pypi/simple/right-glove/index.html",
        f'<a href="{BASE}/pypi/{name}#sha256={hashlib.sha256(wheel.getvalue()).hexdigest()}">{name}</a>')


def cargo(folder):
    crate = tarball({
        "thumb-1.0.0/Cargo.toml": '[package]\nname = "thumb"\nversion = "1.0.0"\nedition = "2021"\n',
        "thumb-1.0.0/src/lib.rs": "pub fn word() -> &'static str { \"thumb\" }\n"})
    put(folder, "cargo/config.json", json.dumps({"dl": f"{BASE}/cargo/crates"}))
    put(folder, "cargo/crates/thumb/1.0.0/download", crate)
    put(folder, "cargo/th/um/thumb", json.dumps(
        {"name": "thumb", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
         "cksum": hashlib.sha256(crate).hexdigest()}) + "\n")


def apt(folder):
    control = "Package: mitten\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@open.example>\n" \
              "Description: one package\n"
    put(folder, "deb/DEBIAN/control", control)
    put(folder, "deb/usr/share/mitten/word", "mitten\n")
    os.makedirs(os.path.join(folder, "apt"))
    package = os.path.join(folder, "apt/mitten.deb")
    os.chmod(os.path.join(folder, "deb/DEBIAN"), 0o755)
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", os.path.join(folder, "deb"),
                    package], check=True, capture_output=True)
    with open(package, "rb") as file:
        content = file.read()
    entry = f"{control}Filename: ./mitten.deb\nSize: {len(content)}\n" \
            f"SHA256: {hashlib.sha256(content).hexdigest()}\n\n"
    put(folder, "apt/Packages", entry)
    put(folder, "apt/Packages.gz", gzip.compress(entry.encode()))


def git(folder):
    bare, work = os.path.join(folder, "git/glove.git"), os.path.join(folder, "seed")
    environment = {"PATH": os.environ["PATH"], "HOME": folder, "GIT_CONFIG_NOSYSTEM": "1"}

    def run(*command):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=n@open.example",
                        "-c", "init.defaultBranch=main", *command],
                       check=True, capture_output=True, env=environment)
    run("init", "-q", work)
    put(work, "README", "a repository\n")
    run("-C", work, "add", "README")
    run("-C", work, "commit", "-q", "-m", "first")
    run("clone", "-q", "--bare", work, bare)
    run("-C", bare, "config", "http.receivepack", "true")


def make(folder):
    """Makes everything below FOLDER/data; returns the folder of the web."""
    web = os.path.join(folder, "data", "web")
    os.makedirs(web)
    for each in (npm, pypi, cargo, apt, git):
        each(web)
    return web
