#!/usr/bin/env python3
"""Breaks every rule of tidy.py once, beside an allowed twin: a rule that cannot fire is a defect."""
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import tidy  # noqa: E402

LONG = "int value;\n" * 50
SHELL = "#!/usr/bin/env bash\n"

# rule -> list of (what a bad tree holds, what its allowed twin holds)
CASES = {
    "layers": [
        ({"src/sys/a.cpp": '#include "wire/reader.hpp"\n'}, {"src/wire/a.cpp": '#include "sys/a.hpp"\n'}),
        ({"src/net/a.cpp": "#include <glove/mcp/b.hpp>\n"}, {"src/net/a.cpp": "#include <glove/net/b.hpp>\n"}),
        ({"src/container/linux/a.cpp": '#include "supervisor/a.hpp"\n'},
         {"src/container/linux/a.cpp": '#include "container/linux/b.hpp"\n'}),
        ({"include/glove/base/a.hpp": "#include <glove/sys/fd.hpp>\n"},
         {"include/glove/base/a.hpp": "// #include <glove/sys/fd.hpp>\n"}),
        ({"src/cli/a.cpp": '#include "../run/a.hpp"\n'}, {"src/cli/a.cpp": '#include "run/a.hpp"\n'}),
        ({"src/novel/a.cpp": "int a;\n"}, {"src/base/a.cpp": "#include <sys/stat.h>\n"}),
    ],
    "one-close": [
        ({"src/sys/a.cpp": "void f() { ::close(3); }\n"}, {"src/sys/a.cpp": "// ::close(3)\n"}),
        ({"src/sys/a.cpp": "void f() {\n    (void)close(3);\n}\n"},
         {"src/sys/a.cpp": "void f(file& it) { it.close(); }\n"}),
        ({"include/glove/sys/fd.hpp": "void f() { ::close(3); ::close(4); }\n"},
         {"include/glove/sys/fd.hpp": "void f() { ::close(3); }\n"}),
    ],
    "raw-calls": [
        ({"src/run/a.cpp": "long a = ::syscall(1);\n"}, {"src/sys/a.cpp": "long a = ::syscall(1);\n"}),
        ({"src/container/a.cpp": "long a = syscall(1);\n"},
         {"src/container/linux/a.cpp": 'long a = ::syscall(1); auto b = "syscall(";\n'}),
    ],
    "public-headers": [
        ({"include/glove/sys/a.hpp": f"#include <{name}>\n"}, {"src/sys/a.cpp": f"#include <{name}>\n"})
        for name in ("linux/mount.h", "boost/json.hpp", "CLI/CLI.hpp", "openssl/evp.h")
    ],
    "heads": [
        ({"src/sys/a.cpp": LONG}, {"src/sys/a.cpp": "// Guarantees nothing.\n" + LONG}),
        ({"include/glove/sys/a.hpp": LONG}, {"include/glove/sys/a.hpp": "int value;\n"}),
    ],
    "one-definition": [
        ({"src/wire/a.hpp": f"namespace glove::wire {{\n{one}\n}}\n",
          "include/glove/wire/b.hpp": f"namespace glove {{ namespace wire {{\n{other}\n}} }}\n"},
         {"src/wire/a.hpp": f"namespace glove::wire {{\n{one}\n}}\n",
          "include/glove/wire/b.hpp": f"namespace glove::net {{\n{other}\n}}\n"})
        for one, other in (
            ("inline constexpr int same = 1;", "inline constexpr int same{2};"),
            ("inline constexpr auto same = table(row<&a::b, list<some{}>{1, 2}>(), row<2>());",
             "inline constexpr word<kind> same[] = {{1, 2}};"),
            ("inline constexpr list<record<rows>{}> same{1, 2};", "inline const std::map<int, int> same = {};"),
            ("struct same : base<int> {\n    int inside;\n};", "class same final {};"),
            ("enum class same : int { a };", "template<class T> struct same { T one; };"),
            ("inline auto f() -> int { return 1; }\nstruct same {};", "struct same { struct inside {}; };"),
        )
    ] + [
        ({"src/wire/a.hpp": "namespace n { struct same {}; }\n", "src/wire/b.hpp": "namespace n { struct same {}; }\n"},
         {"src/wire/a.hpp": "namespace n { struct same {}; }\n", "src/wire/b.hpp": twin})
        for twin in (
            "namespace n { struct same; auto f(same) -> struct same; }\n",
            "namespace n { namespace { struct same {}; } }\n",
            "namespace n { // struct same {};\n}\n",
            "namespace n { struct other { struct same {}; }; }\n",
            "namespace n { auto f() { struct same {}; } }\n",
            "namespace n { struct other::same {}; }\n",
            "namespace n { template<> struct same<int> {}; }\n",
            "namespace n::detail { struct same {}; }\n",
            "namespace n { inline auto same(int) -> int; inline auto f(int same = 1) -> int; }\n",
        )
    ] + [
        ({"src/wire/a.cpp": "namespace n { struct same {}; }\n", "src/wire/b.cpp": "namespace n { struct same {}; }\n"},
         {"src/wire/a.cpp": "namespace { struct same {}; }\n", "src/wire/b.cpp": "namespace { struct same {}; }\n"}),
    ],
    "fuzz-seeds": [
        ({"fuzz/CMakeLists.txt": "glove_fuzz(a_fuzz SOURCES a)\n", "fuzz/seeds/b/1": "x"},
         {"fuzz/CMakeLists.txt": "glove_fuzz(a_fuzz SOURCES a)\n", "fuzz/seeds/a/1": "x"}),
    ],
    "unfinished": [
        ({"docs/a.md": "TO" + "DO: more\n"}, {"docs/a.md": "TO" + "DOS: no\n"}),
        ({"src/sys/a.cpp": "// FIX" + "ME\n"}, {"src/sys/a.cpp": "// fixed\n"}),
    ],
    "machine-names": [
        ({"docs/a.md": "cd /ho" + "me/pat/glove\n"}, {"docs/a.md": "cd /home/agent/glove\n"}),
        ({"docs/a.md": "cd /wo" + "rk/main/glove\n"}, {"docs/a.md": "see design/build/main\n"}),
        ({"a.json": '"https://registry.np' + 'mjs.org/x"\n'}, {"a.json": '"https://registry.example.org/x"\n'}),
    ],
    "shell": [
        ({"scripts/a": SHELL + "cd $1\nrm $2\n"}, {"scripts/a": SHELL + 'cd "$1" || exit\nrm "$2"\n'}),
    ],
    "layout": [
        ({"src/sys/a.cpp": "int  a ;\n"}, {"src/sys/a.cpp": "int a;\n"}),
        ({"tests/sys/a_test.cpp": "int  a ;\n"}, {"tests/sys/a_test.cpp": "int a;\n"}),
    ],
    "sizes": [
        ({"src/sys/a.cpp": "\n" * 401}, {"src/sys/a.cpp": "\n" * 400}),
        ({"include/glove/sys/a.hpp": "\n" * 201}, {"include/glove/sys/a.hpp": "\n" * 200}),
        ({"src/sys/a.cpp": "namespace a {\nint f(int b) {\n" + "    ++b;\n" * 59 + "}\n}\n"},
         {"src/sys/a.cpp": "namespace a {\nint f(int b) {\n" + "    ++b;\n" * 58 + "}\n}\n"}),
        ({"src/sys/a.cpp": "struct a {\n    a(int b) : c(b) {\n" + "    ++c;\n" * 70 + "    }\n    int c;\n};\n"},
         {"src/sys/a.cpp": "constexpr int a[] = {\n" + "    1,\n" * 70 + "};\n"}),
    ],
}


def broken_rules(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        return {rule for rule, *_ in tidy.findings(tidy.Tree(root), tidy.RULES | tidy.WARNINGS)}


class Tidy(unittest.TestCase):
    def test_every_rule_has_a_case(self):
        self.assertEqual(set(CASES), set(tidy.RULES) | set(tidy.WARNINGS))

    def test_layers_hold_every_component_once(self):
        self.assertEqual(len(tidy.RANK), sum(map(len, tidy.LAYERS)))

    def test_a_bad_tree_fires_the_rule(self):
        for rule, cases in CASES.items():
            for bad, _ in cases:
                with self.subTest(rule=rule, tree=bad):
                    self.assertIn(rule, broken_rules(bad))

    def test_its_twin_does_not(self):
        for rule, cases in CASES.items():
            for _, good in cases:
                with self.subTest(rule=rule, tree=good):
                    self.assertNotIn(rule, broken_rules(good))


if __name__ == "__main__":
    unittest.main()
