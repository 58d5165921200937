"""A real agent in a managed session, by the policies of docs/managed-sessions.md as they stand there: its closure is
root's and read-only, its model is reached through the session's proxy and nothing else is, and what its shell writes
into a retained copy is told by the service when the agent has ended."""
import json
import os
import sys
import time
import unittest

import inside
from managed import Managed, Case, controller, service

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../docs"))
import docs  # noqa: E402
import peers  # noqa: E402
import scripted_model  # noqa: E402

PAGE = os.path.join(HERE, "../../docs/managed-sessions.md")
# Where the page has it, and where it is here.
INSTALLED, CLOSURE = "/opt/claude-code", peers.AGENTS
RETAIN = {"access": "retained_write", "materialization": "copy", "max_bytes": 64 << 20, "cleanup_policy": "retain"}
LINE = "made by the agent inside"


def files_of_the_page():
    with open(PAGE, encoding="utf-8") as file:
        return dict(docs.files_of(file.read()))


class Agent(Managed):
    def write_policies(self):
        self.folder("reference")
        files = files_of_the_page()
        self.policy = json.loads(self.here(files["claude-policy.json"]))
        for template in self.policy["runtime_templates"]:
            template["adapter_command_digest"] = digest_of(template)
        service.private_file(self.path("policy.json"), controller.canonical(self.policy))
        service.private_file(self.path("exposures.json"), self.here(files["claude-exposures.json"]))

    def here(self, text):
        return text.replace(docs.HOME_IN_TEXT, self.root).replace(INSTALLED, CLOSURE)

    def model_port(self):
        return self.policy["egress_policies"][0]["targets"][0]["port"]

    def plan_of(self, name, **changes):
        template = next(each for each in self.policy["runtime_templates"] if each["runtime_template_id"] == name)
        profile = self.policy["resource_profiles"][0]
        return service.plan(runtime_id=template["runtime_id"], runtime_template_id=name,
                            adapter_command_digest=template["adapter_command_digest"], tool_policy_id="none",
                            limits={limit: profile[limit] for limit in controller.LIMITS},
                            policy_revision=self.policy["revision"]) | changes

    def connections(self, session_id):
        """[(destination, status)] of the session's egress record, in order."""
        with open(self.path("state/egress-audit.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        return [(each["tool"], each["status"]) for each in lines
                if each["run"] == session_id and each["action"] == "egress"]


def digest_of(template):
    launch = template["launch"]
    return controller.launch_digest(launch["executable_path"], launch["arguments"], launch["environment"],
                                    launch["read_only_paths"])


class Page(unittest.TestCase):
    def test_its_policy_is_whole_and_of_the_agent_that_is_proven(self):
        for template in json.loads(files_of_the_page()["claude-policy.json"])["runtime_templates"]:
            self.assertEqual(template["adapter_command_digest"], digest_of(template))
        with open(PAGE, encoding="utf-8") as file:
            self.assertIn(f"claude-code@{peers.version('claude')}\n", file.read())


class RealAgent(Case):
    makes = Agent

    def test_its_version_and_then_a_scripted_task(self):
        self.judge_closure()
        self.judge_version()
        self.judge_task()

    def judge_closure(self):
        """It is the operator's alone: root's, and nobody can write there."""
        program = self.service.policy["runtime_templates"][0]["launch"]["executable_path"]
        facts = os.stat(program)
        self.assertEqual((facts.st_uid, facts.st_mode & 0o022), (0, 0))
        self.assertTrue(os.statvfs(program).f_flag & os.ST_RDONLY)

    def judge_version(self):
        began = time.monotonic()
        receipt, shown = self.ended("version", self.service.plan_of("claude-version"))
        self.assertEqual(shown, f"{peers.version('claude')} (Claude Code)\r\n".encode())
        self.assertEqual(receipt["retained_changes"], [])
        print(f"its version took {time.monotonic() - began:.1f} s: {receipt['observed']}")

    def judge_task(self):
        """The agent asks its model what to do, runs it with its own shell, and says what the model says."""
        began, my, other = time.monotonic(), self.service, scripted_model.ScriptedModel([{"text": "not this one"}])
        self.addCleanup(other.server_close)
        model = scripted_model.ScriptedModel([{"shell": self.work(other.port)}, {"text": "that was all"}],
                                             my.model_port())
        self.addCleanup(model.server_close)
        with open(os.path.join(my.project, "TASK.md"), "w", encoding="utf-8") as file:
            file.write("Leave a line.\n")
        exposure = my.expose(modes=[RETAIN], templates=["claude-task"])
        plan = my.plan_of("claude-task", schema_version=2, egress_policy_id="model",
                                path_grants=[my.grant_of(exposure, RETAIN)])
        receipt, shown = self.ended("task", plan)
        print(f"the task took {time.monotonic() - began:.1f} s: {receipt['observed']}")
        self.assertIn(b"that was all", shown)
        told, = model.told
        for words in ("Leave a line.", "1000 /workspace/exposures/demo", "closure 1", "HTTP/1.1 403", "direct 1"):
            self.assertIn(words, told)
        self.assertEqual(other.told, [])
        self.judge_changes(receipt)
        self.judge_connections(f"localhost:{model.port}", f"localhost:{other.port}")

    @staticmethod
    def work(other_port):
        return (f"cd exposures/demo && cat TASK.md && echo '{LINE}' > made; echo $(id -u) $PWD;"
                f"touch {CLOSURE}/node_modules/new; echo closure $?;"
                f"exec 3<>/dev/tcp/127.0.0.1/61080; printf 'CONNECT localhost:{other_port} HTTP/1.1\\r\\n\\r\\n' >&3;"
                f"head -n 1 <&3; (exec 4<>/dev/tcp/127.0.0.1/{other_port}); echo direct $?")

    def judge_changes(self, receipt):
        told, = receipt["retained_changes"]
        self.assertEqual([told[name] for name in ("created", "modified", "renamed", "removed")], [1, 0, 0, 0])
        page = self.service.ask("inspect_retained_changes", {"session_id": "task", "exposure_id": "demo", "offset": 0,
                                                             "limit": 256})
        change, = page["changes"]
        self.assertEqual((change["kind"], change["path"]), ("create", "made"))
        self.assertIn(controller.sha256(LINE + "\n"), json.dumps(change))
        self.assertEqual(page["manifest_digest"], told["manifest_digest"])
        self.assertEqual(os.listdir(self.service.project), ["TASK.md"])

    def judge_connections(self, model, other):
        """Every one is on record: what was reached is the model, and what else was wanted was refused."""
        found = self.service.connections("task")
        self.assertEqual({where for where, status in found if status == "ok"}, {model}, found)
        self.assertIn((model, "pending"), found)
        self.assertEqual({status for where, status in found if where == other}, {"invalid_arguments"}, found)


if __name__ == "__main__":
    inside.main()
