"""What a launched session was bound to, encoded by other hands than the service's: the plain dictionaries
below and the encoder of `controller.py`. Run by itself it prints the file of digests that both sides are
held to.
"""
import sys

from controller import LIMITS, Encoder


def fields(out, value, names):
    """Numbers of 64 bits, but those that the description has with 32."""
    for name in names:
        (out.u32 if name in ("mode", "owner", "pids", "nanoseconds") else out.u64)(value[name])
    return out


def profile_digest(binding):
    out = Encoder("glove.managed-launch-profile").text(binding["controller_plan_digest"])
    program = binding["executable"]
    fields(out, program, ("device", "inode", "mode", "size"))
    for time in ("modified", "changed"):
        fields(out, dict(zip(("seconds", "nanoseconds"), program[time])), ("seconds", "nanoseconds"))
    out.text(program["sha256"])
    fields(out, binding["limits"], LIMITS)
    out.items(sorted(binding["environment"], key=str.encode))
    out.u32(len(binding["read_only_paths"]))
    for path in binding["read_only_paths"]:
        out.text(path).u8(0)
    if binding["has_home"]:
        out.u8(1).text("/home/agent")
    else:
        out.u8(0)
    if binding.get("work_directory"):
        out.text("glove.managed-launch-work-dir", binding["work_directory"])
    out.items(binding["arguments"])
    mounts = sorted(binding["mounts"], key=lambda one: (one["alias"].encode(), one["target"].encode()))
    out.u32(len(mounts))
    for one in mounts:
        put_mount(out, one)
    if binding.get("streams"):
        out.text("glove.managed-launch-inherited-stream", "inherited-stream-v1").u32(len(binding["streams"]))
        for one in binding["streams"]:
            out.text(one["alias"]).u32(one["child_descriptor"])
            for end in ("socket", "peer"):
                fields(out, one[end], ("device", "inode", "owner", "mode", "links"))
            out.text(one["manifest_digest"])
    if binding.get("egress"):
        out.text("glove.managed-launch-egress-policy").u8(1).text(egress_digest(*binding["egress"]))
    return out.digest()


def put_mount(out, one):
    out.text(one["alias"], one["target"], one.get("partition", "")).u64(one.get("quota", 0))
    out.u8(int(one.get("writable", False)), int(one["directory"]))
    out.u8(int("source" in one))
    if "source" in one:
        fields(out, one["source"], ("device", "inode", "mode"))
    for part in ("projection", "runtime", "adoption"):
        out.u8(int(part in one)).text(*one.get(part, ()))
    if "secret" in one:
        out.text("glove.managed-launch-secret", *one["secret"])
    if "service" in one:
        out.text("glove.managed-launch-local-service", one["service"])


def egress_digest(policy, targets):
    out = Encoder("glove.egress-policy").text(policy).u32(len(targets))
    for host, port, private in sorted(targets, key=lambda one: (one[0].encode(), one[1], one[2])):
        out.text(host).u32(port).u8(int(private))
    return out.digest()


def token_digest(profile, token):
    return Encoder("glove.managed-launch-egress-token").text(profile, token).digest()


def scratch(size):
    """The three places that every session shares its scratch space between."""
    return [
        {"alias": alias, "target": target, "partition": "__scratch", "quota": size, "writable": True,
         "directory": True}
        for alias, target in (("__scratch_var_tmp", "/var/tmp"), ("__scratch_tmp", "/tmp"))]


def small():
    """As little as there can be."""
    return {
        "controller_plan_digest": "a" * 64,
        "executable": {"device": 1, "inode": 2, "mode": 0o100755, "size": 3, "modified": (4, 5), "changed": (6, 7),
                       "sha256": "b" * 64},
        "limits": dict(zip(LIMITS, (1000, 67108864, 16, 2000, 2097152, 1048576))),
        "environment": [], "read_only_paths": [], "has_home": False, "arguments": ["/usr/bin/true"],
        "mounts": scratch(2097152),
    }


def full():
    """With everything that there is, and nothing in its order."""
    out = small()
    out["environment"] = ["TERM=xterm-256color", "PATH=/usr/bin:/bin", "CODEX_HOME=/home/agent/.codex"]
    out["read_only_paths"] = ["/opt/runtime/codex", "/opt/runtime/base"]
    out["has_home"] = True
    out["work_directory"] = "/workspace"
    out["arguments"] = ["/opt/runtime/codex/bin/codex", "--quiet", "caf\u00e9"]
    out["mounts"] = scratch(1048576) + [
        {"alias": "workspace", "target": "/workspace", "partition": "workspace", "quota": 1048576, "writable": True,
         "directory": True, "source": {"device": 8, "inode": 9, "mode": 0o040755}},
        {"alias": "__runtime_home_codex", "target": "/home/agent", "partition": "__scratch", "quota": 1048576,
         "writable": True, "directory": True, "runtime": ("codex", "c" * 64), "adoption": ("d" * 64, "e" * 64)},
        {"alias": "secret:codex-token", "target": "/home/agent/.codex/auth.json", "partition": "__scratch",
         "quota": 1048576, "writable": True, "directory": False, "source": {"device": 8, "inode": 10, "mode": 0o100600},
         "secret": ("codex-token", "codex")},
        {"alias": "library:sage-core", "target": "/opt/sage/libraries/" + "f" * 64 + ".json", "directory": False,
         "source": {"device": 8, "inode": 11, "mode": 0o100600}, "projection": ("f" * 64, "sage-core", "libraries")},
        {"alias": "sage-observe", "target": "/run/glove/services", "directory": True, "service": "1" * 64},
    ]
    end = {"device": 9, "inode": 20, "owner": 1000, "mode": 0o140600, "links": 1}
    out["streams"] = [{"alias": "sage-observe", "child_descriptor": 3, "socket": end, "peer": dict(end, inode=21),
                       "manifest_digest": "2" * 64}]
    out["egress"] = EGRESS
    return out


def prepared():
    """What the host makes of the plan of its own tests."""
    out = small()
    out["limits"] = dict(zip(LIMITS, (1000, 67108864, 16, 2000, 4194304, 1048576)))
    out["environment"] = ["PATH=/usr/bin:/bin", "TERM=xterm-256color"]
    out["read_only_paths"] = ["/opt/runtime"]
    out["has_home"] = True
    out["work_directory"] = "/workspace"
    out["arguments"] = ["/usr/bin/tool", "--version"]
    own = {"partition": "__scratch", "quota": 3145728, "writable": True}
    out["mounts"] = scratch(3145728) + [
        {"alias": "__runtime_home_codex", "target": "/home/agent", "directory": True, **own},
        {"alias": "site", "target": "/workspace/exposures/site", "partition": "site", "quota": 1048576, "writable": True,
         "directory": True, "source": {"device": 8, "inode": 9, "mode": 0o040755}},
        {"alias": "proj", "target": "/workspace/exposures/proj", "directory": False,
         "source": {"device": 8, "inode": 10, "mode": 0o100644}},
        {"alias": "library:sage-core", "target": "/opt/sage/libraries/" + "f" * 64 + ".json", "directory": False,
         "source": {"device": 8, "inode": 11, "mode": 0o100600}, "projection": ("f" * 64, "sage-core", "libraries")},
        {"alias": "secret:codex-token", "target": "/home/agent/.codex/auth.json", "directory": False,
         "source": {"device": 8, "inode": 12, "mode": 0o100600}, "secret": ("codex-token", "codex"), **own},
    ]
    out["egress"] = ("model-only", [("api.example.com", 443, False)])
    return out


EGRESS = ("models", [("b.example", 443, False), ("a.example", 8443, True), ("a.example", 443, False)])
TOKEN = "0123456789abcdef"


def digests():
    return {"small": profile_digest(small()), "full": profile_digest(full()),
            "prepared": profile_digest(prepared()), "egress": egress_digest(*EGRESS),
            "token": token_digest("a" * 64, TOKEN)}


if __name__ == "__main__":
    sys.stdout.writelines(f"{name} {digest}\n" for name, digest in digests().items())
