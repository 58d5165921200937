"""A server of files behind rules about paths: what it would do alone, and what a rule leaves of it.

The server is the official one. It is told of a wider directory than the rules allow, so what is refused
is refused by Glove.
"""
import json
import os

import inside
import mediation_case
import session

# Of allowed files below the root; None stands for the root itself.
ALLOWED = ["{a}", "{a}/", "{a}/x", "{a}/./x", "{a}//x", "/{a}/x", "{a}/../a/x", "{a}/sub/../x", "{a}/inner/x",
           "{a}/né"]
DENIED = [
    "{a}/../b", "{a}/../b/secret", "{w}/ab", "{w}/a-evil/x", "{w}/A/x", "{W}/a/x", "a/x", "x", "./x", "../a/x",
    "~/x", "~",
    "$HOME/x", "file://{a}/x", "file:{a}/x", "{a}/%2e%2e/b/secret", "{a}/%252e%252e/b/secret", "{a}/..%2fb/secret",
    "{a}/..;/b/secret", "{a}\\..\\b\\secret", "{a}/．．/b/secret", "{a}/‥/b/secret", "{a}/x\0.png", "{a}/x ",
    "{a}/x.",
    "{a}/x\n", " {a}/x", "{a}/\u202ex", "{a}/x\u200d", "/proc/self/root{w}/b/secret", "/proc/self/cwd/x", "/dev/fd/3",
    "{a}/link/secret", "{a}/flink", "{a}/dangling", "{a}/sub/up/../../b/secret", "/etc/passwd", "/", "", ".", "..",
    "{a}/" + "x" * 5000, "{a}/" + "d/" * 2500 + "x", "{w}", "//etc/passwd", "{a}/../../../../etc/passwd",
]
NOT_PATHS = [["{a}/x"], {"path": "{a}/x"}, 5, None, True, 1.5]


class Files(mediation_case.Case):
    def setUp(self):
        super().setUp()
        self.w = self.place.folder("w")
        for name in ("w/a/sub", "w/a/inner", "w/b", "w/a-evil", "w/A"):
            self.place.folder(*name.split("/"))
        for name in ("a/x", "a/inner/x", "b/secret", "ab", "a-evil/x", "A/x", "a/né"):
            with open(os.path.join(self.w, name), "w", encoding="utf-8") as file:
                file.write(f"content of {name}")
        self.a = os.path.join(self.w, "a")
        for name, target in (("link", "../b"), ("flink", "../b/secret"), ("dangling", "../b/not-yet"), ("sub/up", ".."),
                             ("good", "inner")):
            os.symlink(target, os.path.join(self.a, name))

    def path(self, template):
        if not isinstance(template, str):
            return json.loads(json.dumps(template).replace("{a}", self.a))
        return template.format(a=self.a, w=self.w, W=self.w.upper()) if "{" in template else template

    def policy(self, text):
        name = self.place.path("tools.toml")
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o600)
        return ["--policy", name]

    RULES = """
[tool."fs.read_text_file"]
allow = true
[[tool."fs.read_text_file".argument]]
at = "/path"
path_under = ["{a}"]

[tool."fs.list_directory"]
allow = true
[[tool."fs.list_directory".argument]]
at = "/path"
path_under = ["{a}"]

[tool."fs.write_file"]
allow = true
[[tool."fs.write_file".argument]]
at = "/path"
path_under = ["{a}"]
[[tool."fs.write_file".argument]]
at = "/content"
length = [0, 100]

[tool."fs.read_multiple_files"]
allow = true
[[tool."fs.read_multiple_files".argument]]
at = "/paths/*"
path_under = ["{a}"]

[tool."fs.edit_file"]
allow = true
[[tool."fs.edit_file".argument]]
at = "/path"
path_under = ["{a}"]
[[tool."fs.edit_file".argument]]
at = "/edits/*/oldText"
length = [0, 100]
[[tool."fs.edit_file".argument]]
at = "/edits/*/newText"
match = "[a-z ]*"

[tool."fs.move_file"]
allow = true
[[tool."fs.move_file".argument]]
at = "/source"
path_under = ["{a}"]
[[tool."fs.move_file".argument]]
at = "/destination"
path_under = ["{a}"]
"""

    def files(self, *flags, rules=RULES, served=None, **options):
        policy = self.policy(rules.replace("{a}", self.a).replace("{w}", self.w)) if rules else []
        return self.serve(*self.upstream("fs", *mediation_case.node(mediation_case.FILESYSTEM, served or self.w)),
                          "--tool-names", "bare", *policy, *flags, **options)

    def read(self, client, path, **more):
        return client.request("tools/call", {"name": "read_text_file", "arguments": {"path": self.path(path), **more}})

    def refused(self, client, name, **arguments):
        calls = len(self.pending())
        said = client.request("tools/call", {"name": name, "arguments": arguments})
        self.assert_denied(said)
        for told in (self.a, "content of"):  # neither the rule's path nor anything of a file
            if told not in json.dumps(arguments):
                self.assertNotIn(told, session.words(said))
        self.assertEqual(len(self.pending()), calls, "it was sent")
        return said

    def pending(self):
        return [each for each in self.records("call_tool") if each["status"] == "pending"]

    # -- one path --

    def test_paths_that_are_allowed(self):
        client = self.files()
        for template in ALLOWED:
            with self.subTest(template):
                said = self.read(client, template)
                words = session.words(said)
                self.assertFalse(words.startswith("policy denied"), words)
                if template not in ("{a}", "{a}/"):
                    self.assertTrue(words.startswith("content of a/"), words)
        self.assert_words(self.read(client, "{a}/good/x"), "content of a/inner/x")

    def test_paths_that_are_not(self):
        client = self.files()
        for template in DENIED:
            with self.subTest(template[:60]):
                self.refused(client, "read_text_file", path=self.path(template))
        for value in NOT_PATHS:
            with self.subTest(value):
                self.refused(client, "read_text_file", path=self.path(value))
        self.refused(client, "read_text_file")
        self.refused(client, "read_text_file", path=self.path("{a}/x"), head=1)
        self.refused(client, "read_text_file", Path=self.path("{a}/x"))
        self.refused(client, "read_text_file", path=self.path("{a}/x"), nested={"path": self.path("{w}/b/secret")})
        said = client.raw('{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"read_text_file",'
                          '"arguments":{"path":"%s/\\ud800"}}}' % self.a)
        self.assert_not_done(said)
        self.assert_words(self.read(client, "{a}/x"), "content of a/x")

    def test_the_server_alone_would_have_read_some_of_them(self):
        client = self.connect(mediation_case.node(mediation_case.FILESYSTEM, self.w))
        for template in ("{w}/b/secret", "{a}/../b/secret", "{a}/link/secret", "{a}/flink", "{w}/a-evil/x", "{w}/A/x",
                         "{w}/ab"):
            with self.subTest(template):
                self.assertIn("content of", session.words(self.read(client, template)))

    def test_the_same_spelled_in_escapes_is_the_same(self):
        client = self.files()
        for path, good in ((self.a + "/\\u0078", True), (self.a + "/\\u002e\\u002e/b/secret", False),
                           (self.a + "\\/x", True), (self.a + "\\/..\\/b\\/secret", False)):
            with self.subTest(path):
                said = client.raw('{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"read_text_file",'
                                  '"arguments":{"p\\u0061th":"%s"}}}' % path)
                if good:
                    self.assert_words(said, "content of a/x")
                else:
                    self.assert_denied(said)

    def test_relative_paths_begin_where_the_rule_says(self):
        rules = """
[tool."fs.read_text_file"]
allow = true
[[tool."fs.read_text_file".argument]]
at = "/path"
path_under = ["{a}"]
relative = true
"""
        client = self.files(rules=rules, served=self.a)
        for path in ("x", "./x", "inner/x", "sub/../x"):
            with self.subTest(path):
                self.assertIn("content of a/", session.words(self.read(client, path)))
        for path in ("../b/secret", "link/secret", "flink", "~/x", "sub/../../b/secret", "", "x\0"):
            with self.subTest(path):
                self.refused(client, "read_text_file", path=path)

    # -- links that are made under the eyes of the rule --

    def test_a_new_file_is_looked_for_where_it_would_be(self):
        client = self.files()
        for template, good in (("{a}/new", True), ("{a}/sub/new", True), ("{a}/good/new", True), ("{w}/new", False),
                               ("{a}/link/new", False), ("{a}/dangling", False)):
            with self.subTest(template):
                path = self.path(template)
                if good:
                    said = client.call("write_file", path=path, content="written")
                    self.assertFalse(session.is_tool_error(said), said)
                    self.assertTrue(os.path.exists(path))
                else:
                    self.refused(client, "write_file", path=path, content="written")
        for name in ("b/new", "b/not-yet", "new"):
            self.assertFalse(os.path.lexists(os.path.join(self.w, name)))

    def test_a_directory_that_becomes_a_link_is_one(self):
        client = self.files()
        inner = os.path.join(self.a, "inner")
        self.assert_words(self.read(client, "{a}/inner/x"), "content of a/inner/x")
        os.rename(inner, inner + ".old")
        os.symlink("../b", inner)
        self.refused(client, "read_text_file", path=inner + "/secret")
        os.unlink(inner)
        os.rename(inner + ".old", inner)
        self.assert_words(self.read(client, "{a}/inner/x"), "content of a/inner/x")

    def test_the_root_that_is_exchanged_is_no_root(self):
        client = self.files()
        self.assert_words(self.read(client, "{a}/x"), "content of a/x")
        os.rename(self.a, self.a + ".old")
        os.symlink("b", self.a)
        self.refused(client, "read_text_file", path=self.a + "/secret")
        os.unlink(self.a)
        os.rename(self.a + ".old", self.a)
        self.assert_words(self.read(client, "{a}/x"), "content of a/x")

    # -- several paths --

    def test_every_item_of_an_array_is_looked_at(self):
        client = self.files()
        good, bad = self.path("{a}/x"), self.path("{w}/b/secret")
        said = client.call("read_multiple_files", paths=[good, good])
        self.assertIn("content of a/x", session.words(said))
        for paths in ([bad], [good, bad], [bad, good], [good, [good]], good, {"0": good}, [good, None], [{}], None):
            with self.subTest(paths):
                self.refused(client, "read_multiple_files", paths=paths)

    def test_every_edit_is_looked_at(self):
        client = self.files()
        path = self.path("{a}/x")
        edit = {"oldText": "content", "newText": "new words"}
        said = client.call("edit_file", path=path, edits=[edit])
        self.assertFalse(session.is_tool_error(said), said)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "new words of a/x")
        for edits in ([{**edit, "newText": "BAD"}], [edit, {**edit, "newText": "x\n"}],
                      [{**edit, "path": "/etc/passwd"}], [{"oldText": "x"}], [[edit]], edit, [None], "x"):
            with self.subTest(edits):
                self.refused(client, "edit_file", path=path, edits=edits)
        self.refused(client, "edit_file", path=self.path("{w}/b/secret"), edits=[edit])

    def test_both_ends_of_a_move_are_looked_at(self):
        client = self.files()
        good, bad = self.path("{a}/moved"), self.path("{w}/b/moved")
        self.refused(client, "move_file", source=self.path("{a}/x"), destination=bad)
        self.refused(client, "move_file", source=self.path("{w}/b/secret"), destination=good)
        said = client.call("move_file", source=self.path("{a}/x"), destination=good)
        self.assertFalse(session.is_tool_error(said), said)
        self.assertTrue(os.path.exists(good) and not os.path.exists(self.path("{a}/x")))

    # -- other ways to say it --

    def test_a_prefix_on_the_command_line(self):
        client = self.files("--allow", "fs.read_text_file", "--allow-arg", f"fs.read_text_file:path={self.a}/",
                            rules=None)
        self.assertEqual(set(client.tools()), {"read_text_file"})
        self.assert_words(self.read(client, "{a}/x"), "content of a/x")
        for template in ("{w}/b/secret", "{w}/a-evil/x", "{a}/../b/secret", "{a}/link/secret", "x",
                         "{a}/%2e%2e/b/secret",
                         "//etc/passwd"):
            with self.subTest(template):
                self.refused(client, "read_text_file", path=self.path(template))
        for value in NOT_PATHS:
            self.refused(client, "read_text_file", path=self.path(value))

    def test_tools_that_no_rule_names_are_not_there(self):
        client = self.files()
        self.assertEqual(set(client.tools()), {"read_text_file", "list_directory", "write_file", "read_multiple_files",
                                               "edit_file", "move_file"})
        for name in ("read_file", "create_directory", "directory_tree", "search_files", "get_file_info"):
            self.refused(client, name, path=self.path("{a}/x"))

    # -- roots --

    def allowed_directories(self, client):
        return session.words(client.call("list_allowed_directories"))

    def test_roots_of_the_agent_do_not_widen_the_server(self):
        """Alone, the server lets its client replace what it was started with."""
        direct = self.connect(mediation_case.node(mediation_case.FILESYSTEM, self.a), initialize=False)
        direct.initialize(capabilities={"roots": {"listChanged": True}})
        request = direct.receive()
        self.assertEqual(request["method"], "roots/list")
        direct.put(json.dumps({"jsonrpc": "2.0", "id": request["id"],
                               "result": {"roots": [{"uri": f"file://{self.w}/b", "name": "b"}]}}) + "\n")
        self.assertTrue(inside.wait_until(lambda: "/w/b" in self.allowed_directories(direct), 10))

        client = self.files("--allow", "fs.list_allowed_directories", rules=None, served=self.a, initialize=False)
        client.initialize(capabilities={"roots": {"listChanged": True}})
        client.send("notifications/roots/list_changed")
        told = self.allowed_directories(client)
        self.assertIn(self.a, told)
        self.assertNotIn("/w/b", told)
        self.assertEqual([each for each in client.heard if "method" in each], [])

    def test_roots_of_the_operator_reach_the_server(self):
        rules = """
[tool."fs.list_allowed_directories"]
allow = true
[roots]
fs = ["{w}/b"]
"""
        client = self.files(rules=rules, served=self.a)
        self.assertTrue(inside.wait_until(lambda: "/w/b" in self.allowed_directories(client), 10))


class Commands(mediation_case.Case):
    """The rules, asked without an agent."""

    def test_a_call_can_be_tried_without_being_made(self):
        upstream = self.upstream("a", *self.actor())
        for words, status in (("good-one", 0), ("bad", 1)):
            done = self.glove("mcp", "check", *upstream, "--allow", "a.act", "--allow-arg", "a.act:words=good-",
                              "a.act", json.dumps({"words": words}))
            self.assertEqual(done[0], status, done)
        self.assertEqual(self.arrived("tools/call"), [])

    def test_the_tools_are_shown_with_the_reason_for_what_is_hidden(self):
        status, out, err = self.glove("mcp", "tools", *self.upstream("a", *self.actor()), "--allow", "a.act")
        self.assertEqual(status, 0, err)
        self.assertIn("a__act", out)
        self.assertIn("other", out)
        self.assertEqual(self.arrived("tools/call"), [])

    def test_a_misspelled_tool_is_not_silent(self):
        status, out, err = self.glove("mcp", "tools", *self.upstream("a", *self.actor()), "--allow", "a.atc")
        self.assertIn("atc", out + err, status)

    def tools_by(self, policy):
        return self.glove("mcp", "tools", *self.upstream("a", *self.actor()), "--policy", policy)

    def test_a_policy_that_others_can_change_is_no_policy(self):
        name = self.place.path("tools.toml")
        with open(name, "w", encoding="utf-8") as file:
            file.write('[tool."a.act"]\nallow = true\n')
        for mode, good in ((0o600, True), (0o400, True), (0o644, False), (0o660, False), (0o602, False)):
            os.chmod(name, mode)
            done = self.tools_by(name)
            self.assertEqual(done[0] == 0, good, (oct(mode), done))
        os.chmod(name, 0o600)
        os.symlink(name, name + ".link")
        self.assertNotEqual(self.tools_by(name + ".link")[0], 0)
        os.link(name, name + ".second")
        self.assertNotEqual(self.tools_by(name)[0], 0)

    def test_rules_that_are_not_understood_start_nothing(self):
        for text in ('[tool."a.act"]\nallow = "yes"\n', '[tool."a.act"]\nalow = true\n', '[tol."a.act"]\n', "[tool",
                     '[tool."b.act"]\nallow = true\n', '[tool."a.act"]\nallow = true\n[tool."a.act"]\nallow = false\n',
                     '[[tool."a.act".argument]]\nat = "/x"\nmatch = "("\n', '[tool.a.act]\nallow = true\n'):
            with self.subTest(text):
                name = self.place.path("tools.toml")
                with open(name, "w", encoding="utf-8") as file:
                    file.write(text)
                os.chmod(name, 0o600)
                status, _, err = self.tools_by(name)
                self.assertNotEqual(status, 0)
                self.assertIn("tools.toml", err)
        self.assertEqual(self.arrived(), [])


if __name__ == "__main__":
    inside.main()
