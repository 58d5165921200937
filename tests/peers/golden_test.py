"""The golden frames are those of golden.py, and a real service answers every one of them exactly so."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import controller  # noqa: E402
import golden  # noqa: E402
import service  # noqa: E402


class Golden(unittest.TestCase):
    maxDiff = None

    def test_the_files(self):
        kept = {}
        for name in os.listdir(golden.FOLDER):
            with open(os.path.join(golden.FOLDER, name), encoding="utf-8") as file:
                kept[name] = file.read()
        self.assertEqual(kept, {name: text + "\n" for name, text in golden.frames()})

    def test_a_service_answers_so(self):
        frames = dict(golden.frames())
        with service.Service(key=golden.KEY, journal=golden.JOURNAL) as running:
            expires = controller.now_ms() + service.HOUR_MS
            values = {"SECRET": controller.read_secret(running.runtime), "DEADLINE": controller.now_ms() + 120_000,
                      "PLAN_EXPIRES": expires, "PROJECT": running.project,
                      "PLAN_DIGEST": controller.plan_digest(service.plan(expires))}
            for method, *_ in golden.rows():
                before = controller.now_ms()
                answer = running.controller.exchange(golden.fill(frames[f"{method}.request.json"], values))
                after = controller.now_ms()
                if method == "create_session":
                    values["CREATED"] = controller.strict(answer)["result"]["created_at_ms"]
                    self.assertTrue(before <= values["CREATED"] <= after)
                if method == "create_path_exposure":
                    ends = controller.strict(answer)["result"]["exposure"]["expires_at_ms"]
                    self.assertTrue(before <= ends - 3_600_000 <= after)
                    values["EXPOSURE_EXPIRES"] = ends
                    values["SCOPE"] = controller.scope_digest(
                        "proj", 1, "projects", controller.source_digest(running.project), [service.READ], ends,
                        ["codex-safe"])
                with self.subTest(method):
                    self.assertEqual(answer, golden.fill(frames[f"{method}.response.json"], values))
            self.assertEqual(running.stop(), 0)


if __name__ == "__main__":
    unittest.main()
